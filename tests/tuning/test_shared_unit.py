"""Features that share a unit: found where nearly constant ones are noise, declined where spreads mean nothing."""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss

from kstonet import KStoNetClassifier


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
