"""Trainings on a Gram of low rank, against dense ones: all that a user asks of a model."""

import numpy as np
import pytest
from sklearn.base import clone

import kstonet
from kstonet import KStoNetClassifier, KStoNetRegressor
from kstonet.gram import DenseGram, LowRank
from kstonet.uncertainty import calibration, cross_fitting

pytestmark = pytest.mark.usefixtures("few_folds")  # dense and other trainings have the same folds

RNG = np.random.default_rng(0)
N = 240
X = RNG.normal(size=(N, 3))
SIGNAL = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]
Y = SIGNAL + 0.2 * RNG.normal(size=N)
LABELS = np.digitize(SIGNAL, [-0.5, 0.5])
NEW = RNG.normal(size=(60, 3))
SHORT = {
    "tuning": "none",
    "loss": "squared",
    "C": 20.0,
    "hidden_layer_sizes": (4,),
    "max_iter": 4,
    "n_average": 2,
    "random_state": 0,
}
EXACT = [LowRank(rank=N, leaf_rows=0, tolerance=0.0), LowRank(rank=10, leaf_rows=N)]  # all rows as landmarks; one leaf
COARSE = LowRank(rank=60, leaf_rows=80)


def regressor(solver, **changes):
    return KStoNetRegressor(solver=solver, **SHORT | changes).fit(X, Y)


@pytest.fixture(scope="module")
def dense():
    return regressor("dense", residuals=None)


@pytest.mark.parametrize("solver", EXACT, ids=["landmarks", "leaf"])
def test_without_approximation_the_network_is_the_dense_one(solver, dense):
    model = regressor(solver, residuals=None)
    np.testing.assert_allclose(model.predict(NEW), dense.predict(NEW), atol=1e-4)
    np.testing.assert_allclose(model.transform(NEW), dense.transform(NEW), atol=1e-4)
    assert model.plan_.trace_left_out < (1e-6 if solver.leaf_rows == 0 else 1.0)


@pytest.mark.parametrize("solver", EXACT, ids=["landmarks", "leaf"])
def test_classifiers_too(solver):
    here, there = (KStoNetClassifier(solver=one, **SHORT).fit(X, LABELS) for one in ("dense", solver))
    np.testing.assert_allclose(there.predict_proba(NEW), here.predict_proba(NEW), atol=2e-3)
    assert there.calibration_temperature_ == pytest.approx(here.calibration_temperature_, rel=0.02)


@pytest.mark.parametrize("solver", EXACT, ids=["landmarks", "leaf"])
def test_support_vector_regressions_too(solver):
    given = SHORT | {"loss": "epsilon_insensitive", "svr_tol": 1e-6, "residuals": None, "max_iter": 2}
    here, there = (KStoNetRegressor(solver=one, **given).fit(X, Y) for one in ("dense", solver))
    difference = there.predict(NEW) - here.predict(NEW)  # a kink that a sampler meets earlier or later shows in single rows
    assert np.sqrt(np.mean(difference**2)) < 5e-3 * Y.std()


@pytest.mark.parametrize(("residuals", "within"), [("crossfit", 0.25), ("training", 0.5)])
def test_intervals_have_the_width_of_dense_ones(residuals, within):
    """Few landmarks leave more variance to the first layer; residuals of the training do not say what it is worth."""
    here, there = (regressor(one, residuals=residuals).predict_interval(NEW, 0.9) for one in ("dense", COARSE))
    assert np.diff(there).mean() == pytest.approx(np.diff(here).mean(), rel=within)


def test_left_out_values_are_those_of_refits():
    """Every row left out of the regressions in turn, with landmarks and leaves kept."""
    model = KStoNetClassifier(solver=COARSE, warm_start=True, **SHORT | {"residuals": "training"}).fit(X, LABELS)
    state = model._resume[1][-1]
    layer, latents = state.network.first, state.latents[0]
    values = layer.values_above(latents, None)
    for i in (0, 17, 101):
        weights = np.ones(N)
        weights[i] = 0.0
        np.testing.assert_allclose(layer.refit(None, latents, weights).mean()[i], values[i], atol=1e-3)


def test_files_hold_the_whole_model(tmp_path):
    for task, targets in ((KStoNetRegressor, Y), (KStoNetClassifier, LABELS)):
        model = task(solver=COARSE, **SHORT).fit(X, targets)
        kstonet.save(model, tmp_path / "model.kstonet")
        loaded = kstonet.load(tmp_path / "model.kstonet")
        np.testing.assert_array_equal(loaded.predict(NEW), model.predict(NEW))
        assert loaded.plan_ == model.plan_
        assert loaded.solver == COARSE
        if task is KStoNetRegressor:
            np.testing.assert_array_equal(loaded.predict_interval(NEW), model.predict_interval(NEW))


def test_the_result_follows_from_the_seed_for_any_number_of_threads():
    one, two = (regressor(COARSE, n_jobs=n_jobs).predict_interval(NEW) for n_jobs in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_models_say_that_they_are_approximate(dense):
    model = regressor(COARSE, residuals=None)
    plan = model.plan_
    assert (plan.solver, plan.approximate, plan.rank, plan.leaf_rows) == ("low_rank", True, 60, 60)
    assert 0 < plan.trace_left_out < 0.5
    assert "leave out" in str(plan)
    assert model.n_support_ == N  # leaves keep their rows
    assert regressor(LowRank(rank=60, leaf_rows=0), residuals=None).n_support_ == 60
    assert not dense.plan_.approximate
    assert clone(model).explain_plan(X).solver == "low_rank"


@pytest.mark.parametrize("leaf_rows", [0, 80])
def test_support_vector_regressions_have_a_certificate(leaf_rows):
    coarse, fine = (
        regressor(LowRank(rank, leaf_rows, tolerance=0.0), loss="epsilon_insensitive", residuals=None, max_iter=2)
        for rank in (20, N)
    )
    assert fine.plan_.dual_gap < 5e-3 < coarse.plan_.dual_gap
    assert "of the optimum with the true kernel" in str(fine.plan_)
    assert regressor(COARSE, residuals=None).plan_.dual_gap is None


def test_validation_rows_and_weights():
    weights = RNG.uniform(0.5, 2.0, size=N)
    weights[::9] = 0.0
    for solver in EXACT:
        here, there = (
            KStoNetRegressor(solver=one, **SHORT | {"residuals": None}).fit(X, Y, weights, X_val=NEW, y_val=NEW[:, 0])
            for one in ("dense", solver)
        )
        losses = [[record["validation_loss"] for record in model.history_] for model in (here, there)]
        np.testing.assert_allclose(losses[1], losses[0], rtol=1e-3)


def with_limits(monkeypatch, *names):
    """Few rows count as some, or as many."""
    for name in names:
        for module in (cross_fitting, calibration):
            monkeypatch.setattr(module, name, 200)


def width(model):
    return np.diff(model.predict_interval(NEW)).mean()


@pytest.mark.parametrize(("solver", "scores"), [("dense", 150), (COARSE, 80)])
def test_a_part_of_many_rows_calibrates(monkeypatch, solver, scores):
    """The limits are lowered: intervals from a part of the rows are about those from all.

    Of a dense matrix more rows are left out, one at a time.
    """
    everything = regressor(solver)
    with_limits(monkeypatch, "SOME_ROWS", "MANY_ROWS")
    monkeypatch.setattr(DenseGram, "largest_inverse", 200)
    monkeypatch.setattr(cross_fitting, "LEFT_OUT_ROWS", 150)
    monkeypatch.setattr(cross_fitting, "FEWEST_OF_MANY", 80)
    monkeypatch.setattr(cross_fitting, "LARGEST_SHARE", 2)
    part = cross_fitting.part_of_many(N)
    assert len(part) == 80
    assert len(np.unique(part)) == 80
    assert np.isin(part, cross_fitting.left_out_rows(N, part)).all()
    some = regressor(solver)
    assert len(some.trained_.calibration.factor.scores) == scores
    assert 0.7 < width(some) / width(everything) < 1.4


def test_a_part_of_some_rows_says_how_large_left_out_residuals_are(monkeypatch):
    """The limits are lowered: the matrix is factored, all rows have a score, and intervals are about those from five folds."""
    everything = regressor("dense")
    with_limits(monkeypatch, "SOME_ROWS")
    monkeypatch.setattr(DenseGram, "largest_inverse", 200)
    some = regressor("dense")
    np.testing.assert_allclose(some.predict(NEW), everything.predict(NEW), rtol=1e-3, atol=1e-3)
    assert len(some.trained_.calibration.factor.scores) == len(everything.trained_.calibration.factor.scores) == N
    assert 0.8 < width(some) / width(everything) < 1.25
