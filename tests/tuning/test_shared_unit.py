"""Features that share a unit: found where nearly constant ones are noise, declined where spreads mean nothing."""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss

from kstonet import KStoNetClassifier, load, save
from kstonet.tuning.judging import Rows
from kstonet.tuning.shared_unit import lacks


def test_pixels_keep_their_unit():
    X, y = load_digits(return_X_y=True)
    model = KStoNetClassifier(random_state=0, residuals=None).fit(X[:300], y[:300])
    assert "share" in model.tuning_["reason"]
    other = KStoNetClassifier(random_state=0, residuals=None).fit(X[:300] / X[:300].std(axis=0).clip(0.1), y[:300])
    p, p_other = model.predict_proba(X[300:]), other.predict_proba(X[300:] / X[:300].std(axis=0).clip(0.1))
    assert log_loss(y[300:], p) < log_loss(y[300:], p_other)


def test_arbitrary_units_do_not_matter():
    """What tells the classes apart hardly varies, in a unit of its own: standardised features win."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    model = KStoNetClassifier(random_state=0, residuals=None).fit(X * [0.01, 0.01, 10.0, 100.0], y)
    assert "share" not in model.tuning_["reason"]
    assert model.score(X * [0.01, 0.01, 10.0, 100.0], y) > 0.9


def test_a_search_without_hope_ends_on_few_rows(monkeypatch):
    rows = []
    search = Rows.best_width
    monkeypatch.setattr(Rows, "best_width", lambda self, *of: rows.append(len(self)) or search(self, *of))
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 4))
    KStoNetClassifier(random_state=0, residuals=None, n_jobs=1).fit(X * [0.01, 0.01, 10.0, 100.0], X[:, 0] * X[:, 1] > 0)
    assert set(rows) == {400}
    KStoNetClassifier(random_state=0, residuals=None, n_jobs=1).fit(X[:, :2] * [1.0, 2.0], X[:, 0] * X[:, 1] > 0)
    assert 800 in rows


def baskets(n, seed, items=100):
    """Parts of 30 lists of 20 items, ten lists per class, and a few other items: sizes say nothing, but are in distances."""
    lists = np.array([np.random.default_rng(k).permutation(items)[:20] for k in range(30)])
    rng = np.random.default_rng(seed)
    which, X = rng.integers(30, size=n), np.zeros((n, items))
    for row, own in zip(X, lists[which], strict=True):
        row[rng.choice(own, rng.integers(3, 21), replace=False)] = 1.0
        row[rng.choice(items, rng.integers(0, 4), replace=False)] = 1.0
    return X, which % 3


def test_what_rows_share_tells_them_apart_where_their_sizes_do_not(tmp_path):
    X, y = baskets(400, 0)
    new, labels = baskets(600, 1)
    model = KStoNetClassifier(random_state=0).fit(X, y)
    assert model.tuning_["reason"].startswith("tanimoto")
    rival = KStoNetClassifier(kernel="rbf", random_state=0).fit(X, y)
    assert all(row["kernel"] != "tanimoto" for row in rival.tuning_["table"])  # the kernel was given
    assert log_loss(labels, model.predict_proba(new)) < log_loss(labels, rival.predict_proba(new))
    save(model, tmp_path / "m.kstonet")
    np.testing.assert_array_equal(load(tmp_path / "m.kstonet").predict_proba(new), model.predict_proba(new))
    again = KStoNetClassifier(tuning="none", random_state=0, **model.tuned_).fit(X, y)
    np.testing.assert_array_equal(again.predict_proba(new), model.predict_proba(new))


def test_only_features_with_a_zero_that_means_something_are_compared_by_what_they_share():
    X, y = baskets(120, 2)
    assert lacks(X)
    centred = KStoNetClassifier(random_state=0, residuals=None).fit(X - 0.5, y)
    assert all(row["kernel"] != "tanimoto" for row in centred.tuning_["table"])
