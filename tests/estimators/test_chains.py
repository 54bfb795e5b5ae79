"""``n_chains``: several trainings whose last iterations are averaged."""

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris

import kstonet
from kstonet import KStoNetClassifier, KStoNetRegressor, StoNetRegressor
from kstonet.metrics import coverage

FAST = {"max_iter": 5, "n_average": 3, "n_imputation_steps": 5, "random_state": 0}
X, y = (part[:200] for part in load_diabetes(return_X_y=True))


@pytest.mark.parametrize(("kind", "tuning"), [(KStoNetRegressor, {"tuning": "none"}), (StoNetRegressor, {})])
def test_predictions_are_means_over_the_chains(kind, tuning):
    one, three = (kind(n_chains=n, residuals=None, **tuning, **FAST).fit(X, y) for n in (1, 3))
    outputs = three.trained_.outputs(X)
    assert len(outputs) == 9
    np.testing.assert_allclose(outputs[:3], one.trained_.outputs(X), atol=1e-8)  # the first chain is the only one
    np.testing.assert_allclose(three.predict(X), y.mean() + y.std() * outputs.mean(axis=0)[:, 0])
    ends = outputs[[2, 5, 8], :, 0]
    assert np.abs(ends[0] - ends[1]).max() > 1e-3
    assert np.abs(ends[1] - ends[2]).max() > 1e-3


def test_of_a_chain_that_rests_one_network_is_kept():
    model = KStoNetRegressor(tuning="none", loss="squared", C=1.0, hidden_layer_sizes=4, residuals=None, **FAST).fit(X, y)
    assert len({record["loss"] for record in model.history_}) == 1
    assert len(model.trained_.uppers) == len(model.trained_.outputs(X)) == 1
    assert model.n_iter_ == 5


def test_history_says_which_chain():
    model = KStoNetRegressor(tuning="none", n_chains=2, residuals=None, **FAST).fit(X, y)
    assert [record["chain"] for record in model.history_] == [0] * 5 + [1] * 5
    assert [record["iteration"] for record in model.history_] == [1, 2, 3, 4, 5] * 2
    assert model.n_iter_ == 5


def test_intervals_of_chains():
    """Those of one chain, a little wider by the variance between chains; 95 % of 242 rows, all but 4 deviations."""
    rest_X, rest_y = (part[200:] for part in load_diabetes(return_X_y=True))
    one, three = (KStoNetRegressor(tuning="none", C=1.0, n_chains=n, max_iter=10, random_state=0).fit(X, y) for n in (1, 3))
    widths = [np.ptp(model.predict_interval(rest_X), axis=1).mean() for model in (one, three)]
    assert 0.9 < widths[1] / widths[0] < 1.3
    assert abs(coverage(rest_y, three.predict_interval(rest_X)) - 0.95) < 4 * np.sqrt(0.05 * 0.95 / 242)
    distribution = three.predict_dist(rest_X)
    np.testing.assert_allclose(distribution.mean, three.predict(rest_X))
    assert (distribution.variance_by_source["between iterations"] > 0).all()


@pytest.mark.usefixtures("few_folds")
@pytest.mark.parametrize("residuals", ["crossfit", "training"])
def test_every_kind_of_residuals(residuals):
    model = KStoNetRegressor(tuning="none", n_chains=2, residuals=residuals, **FAST).fit(X, y)
    assert np.isfinite(model.predict_interval(X)).all()


def test_classes(few_folds):
    rows, labels = load_iris(return_X_y=True)
    model = KStoNetClassifier(tuning="none", n_chains=2, **FAST).fit(rows, labels)
    assert model.score(rows, labels) > 0.9
    bounds = model.predict_proba_interval(rows)
    p = model.predict_proba(rows)
    assert ((bounds[:, :, 0] <= p + 1e-9) & (p <= bounds[:, :, 1] + 1e-9)).all()


def test_chains_go_on():
    tight = {"n_chains": 2, "residuals": None, "C": 1.0, "svr_tol": 1e-9}  # what a factor was used for before does not show
    rows = X[:80], y[:80]
    once = KStoNetRegressor(tuning="none", **tight, **FAST).fit(*rows)
    twice = KStoNetRegressor(tuning="none", **tight, warm_start=True, **(FAST | {"max_iter": 2})).fit(*rows)
    twice.set_params(max_iter=3).fit(*rows)
    assert twice.n_iter_ == 5
    np.testing.assert_allclose(twice.predict(X), once.predict(X), rtol=1e-3)


def test_an_interrupted_chain_does_not_count():
    """The chains before it do: its iterates are those of a training that has not come far."""

    def stop(state):
        calls.append(state.iteration)
        if len(calls) == 7:  # the second of the second chain
            raise KeyboardInterrupt

    calls: list[int] = []
    model = KStoNetRegressor(tuning="none", n_chains=3, residuals=None, callback=stop, **FAST).fit(X, y)
    one = KStoNetRegressor(tuning="none", residuals=None, **FAST).fit(X, y)
    np.testing.assert_allclose(model.predict(X), one.predict(X))


def test_stored_and_loaded(tmp_path, few_folds):
    model = KStoNetRegressor(tuning="none", n_chains=2, **FAST).fit(X, y)
    kstonet.save(model, tmp_path / "model.kstonet")
    loaded = kstonet.load(tmp_path / "model.kstonet")
    np.testing.assert_array_equal(loaded.predict_interval(X), model.predict_interval(X))


@pytest.mark.parametrize("bad", [0, 1.5, "two"])
def test_bad_numbers(bad):
    with pytest.raises(ValueError, match=f"n_chains={bad!r} must be a whole number >= 1"):
        KStoNetRegressor(tuning="none", n_chains=bad).fit(X, y)
