"""The Tanimoto kernel: against counts of set elements, before and after features were standardised."""

import numpy as np
import pytest

from kstonet.gram import make_kernel
from kstonet.gram.kernels import Tanimoto
from kstonet.persistence import ModelFileError
from kstonet.persistence.consistency import check_kernel
from kstonet.scaling import Scaler

RNG = np.random.default_rng(0)
BITS = (RNG.random((25, 12)) < 0.3).astype(float)


@pytest.mark.parametrize("exponent", [1, 2, 5])
def test_it_counts_what_sets_share(exponent):
    sets = [set(np.flatnonzero(row)) for row in BITS]
    expected = [[(len(a & b) / len(a | b) if a | b else 1.0) ** exponent for b in sets] for a in sets]
    np.testing.assert_allclose(make_kernel("tanimoto", BITS, exponent=exponent)(BITS, BITS), expected, rtol=1e-12, atol=1e-25)


def test_rows_of_zeros_are_alike_and_unlike_others():
    rows = np.array([[0.0, 0.0], [1.0, 2.0]])
    np.testing.assert_allclose(Tanimoto()(rows, rows), np.eye(2), atol=1e-25)
    assert np.isfinite(Tanimoto().gradient(rows, rows, np.ones((1, 2)))).all()


def test_the_origin_undoes_the_centring():
    scaler = Scaler.fit(BITS, None)
    scales, origin = tuple(1.0 / scaler.scale), tuple(scaler.mean / scaler.scale)
    kernel = Tanimoto(scales, origin=origin)
    np.testing.assert_allclose(kernel(scaler.forward(BITS), scaler.forward(BITS)), Tanimoto()(BITS, BITS), rtol=1e-9)


@pytest.mark.parametrize("exponent", [1, 2, 3])
def test_it_is_positive_semidefinite_for_real_features(exponent):
    rows = np.vstack([RNG.normal(size=(60, 3)), RNG.normal(size=(40, 3)) + 3.0])
    assert np.linalg.eigvalsh(Tanimoto(exponent=exponent)(rows, rows)).min() > -1e-12


@pytest.mark.parametrize("exponent", [0, 1.5])
def test_other_exponents_are_refused(exponent):
    with pytest.raises(ValueError, match="whole number"):
        Tanimoto(exponent=exponent)


def test_a_file_whose_origin_does_not_fit_the_features_is_refused():
    check_kernel(Tanimoto(origin=(0.5, 1.0)), 2)
    with pytest.raises(ModelFileError, match="one origin per feature"):
        check_kernel(Tanimoto(origin=(0.5, 1.0)), 3)
