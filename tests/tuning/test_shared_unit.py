"""Features that share a unit: found where nearly constant ones are noise, declined where spreads mean nothing."""

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss

from kstonet import KStoNetClassifier
from kstonet.problem import Problem, Rows
from kstonet.targets import ClassTargets
from kstonet.tuning.automatic import Rows as Judged
from kstonet.tuning.screening_ridge import ridge_fit
from kstonet.tuning.shared_unit import left_out_log_loss


def test_pixels_keep_their_unit():
    X, y = load_digits(return_X_y=True)
    model = KStoNetClassifier(random_state=0, residuals=None).fit(X[:500], y[:500])
    assert "share" in model.tuning_["reason"]
    other = KStoNetClassifier(random_state=0, residuals=None).fit(X[:500] / X[:500].std(axis=0).clip(0.1), y[:500])
    p, p_other = model.predict_proba(X[500:]), other.predict_proba(X[500:] / X[:500].std(axis=0).clip(0.1))
    assert log_loss(y[500:], p) < log_loss(y[500:], p_other)


def test_arbitrary_units_do_not_matter():
    """What tells the classes apart hardly varies, in a unit of its own: standardised features win."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    model = KStoNetClassifier(random_state=0, residuals=None).fit(X * [0.01, 0.01, 10.0, 100.0], y)
    assert "share" not in model.tuning_["reason"]
    assert model.score(X * [0.01, 0.01, 10.0, 100.0], y) > 0.9


@pytest.mark.parametrize("classes", [2, 4])
def test_left_out_log_loss_is_that_of_refits(classes):
    """Every row left out in turn by refitting; then the best temperature of a fine grid."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    labels = np.argmax(X @ rng.normal(size=(2, classes)) + 0.5 * rng.gumbel(size=(40, classes)), axis=1)
    labels[:classes] = np.arange(classes)
    problem = Problem.of(Rows(X, labels), ClassTargets, standardize=False)
    Y = problem.targets.judged(problem.outputs, None)
    K = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    found = left_out_log_loss(Judged(X, Y, None), ridge_fit(K, Y, 0.5), labels)
    left = np.empty_like(Y)
    for i in range(40):
        others = np.delete(np.arange(40), i)
        fit = ridge_fit(K[np.ix_(others, others)], Y[others], 0.5)
        left[i] = K[i, others] @ fit.coef + fit.intercept
    logits = np.column_stack([np.zeros(40), left]) if classes == 2 else left
    losses = []
    for scale in np.geomspace(0.1, 100, 2000):
        shifted = scale * logits - (scale * logits).max(axis=1, keepdims=True)
        log_p = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
        losses.append(-log_p[np.arange(40), labels].mean())
    assert min(losses) <= found + 1e-9
    assert found < min(losses) + 0.02  # the temperature has a prior, which weighs as much as a row or two
