"""Prediction from what is kept of the first layers."""

import numpy as np

from kstonet.gram import make_kernel
from kstonet.gram.expansion import Expansion, ExpansionPart


def expansion(kernel, X, seed=0, iterates=3, units=(0, 2), q=None):
    rng = np.random.default_rng(seed)
    coef = rng.normal(size=(iterates, len(units), q or len(X)))
    coef[:, :, ::3] = 0.0
    return coef, ExpansionPart.of(kernel, X, coef, np.array(units))


def test_values_are_the_sums_over_all_rows(monkeypatch):
    rng = np.random.default_rng(1)
    X, new = rng.normal(size=(30, 4)), rng.normal(size=(11, 4))
    rbf, linear = make_kernel("rbf", X, gamma=0.3), None
    coef_rbf, part_rbf = expansion(rbf, X)
    coef_linear, part_linear = expansion(linear, X, units=(1,), q=4)
    assert len(part_rbf.basis) == 20  # rows without a coefficient are gone
    assert part_linear.basis.tolist() == [1, 2]
    intercept = rng.normal(size=(3, 3))
    monkeypatch.setattr("kstonet.gram.blocks.BLOCK_BYTES", 8 * 20 * 4)  # four rows at a time
    blocks = list(Expansion((part_rbf, part_linear), intercept).blocks(new))
    assert [rows.stop - rows.start for rows, _, _ in blocks] == [4, 4, 3]
    values = np.concatenate([block for _, block, _ in blocks], axis=1)
    for t in range(3):
        np.testing.assert_allclose(values[t][:, [0, 2]], rbf(new, X) @ coef_rbf[t].T + intercept[t, [0, 2]])
        np.testing.assert_allclose(values[t][:, 1], new @ coef_linear[t, 0] + intercept[t, 1])


def test_precomputed_kernels_keep_columns():
    rng = np.random.default_rng(2)
    K = rng.normal(size=(30, 30))
    new = rng.normal(size=(5, 30))
    coef, part = expansion(make_kernel("precomputed", K @ K.T), K @ K.T, units=(0,))
    (_, values, _), *rest = Expansion((part,), np.zeros((3, 1))).blocks(new)
    assert not rest
    np.testing.assert_allclose(values[:, :, 0], (new @ coef[:, 0].T).T)


def test_a_layer_without_support_vectors_is_its_intercept():
    X = np.zeros((4, 2))
    part = ExpansionPart.of(make_kernel("rbf", X, gamma=1.0), X, np.zeros((1, 2, 4)), np.arange(2))
    (_, values, _), *_ = Expansion((part,), np.array([[1.0, 2.0]])).blocks(X)
    np.testing.assert_array_equal(values, np.broadcast_to([1.0, 2.0], (1, 4, 2)))
