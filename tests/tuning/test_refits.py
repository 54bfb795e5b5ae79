"""Predictions of training rows that neither the training nor the choice of its settings has seen."""

import numpy as np
import pytest

from kstonet import KStoNetRegressor
from kstonet.checkpoint import Run
from kstonet.problem import Problem, Rows
from kstonet.targets import NumericTargets
from kstonet.tuning.refits import FEW_ROWS, MANY_ROWS, MIDDLE_ROWS, refit_folds, refitted_predictions
from kstonet.uncertainty.noise_model import NoiseModel, left_out_variances


def predicted(X, y, folds=4):
    """In the units of the targets, by the rules of the estimator."""
    model = KStoNetRegressor(max_iter=3, random_state=0)
    problem = model._problem(Rows(X, y))
    asked, settings = model._asked(), model._settings()

    def choose(part):
        return model._choose(asked, part, settings, 0, Run()).parameters

    outputs = refitted_predictions(problem, settings, choose, folds, Run())
    return problem.targets.in_units(outputs)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(32, 3))
    return X, np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=32)


def test_a_row_does_not_know_its_own_target(rows):
    X, y = rows
    before = predicted(X, y)
    changed = y.copy()
    changed[5] += 4.0
    after = predicted(X, changed)
    fold = np.random.default_rng(0).permutation(32) % 4
    same = fold == fold[5]
    np.testing.assert_allclose(after[same], before[same], rtol=1e-9)  # neither training nor choice saw the change
    assert abs(after[~same] - before[~same]).max() > 1e-3  # which the others did


def test_intervals_of_few_rows_are_learnt_from_them(rows, monkeypatch):
    X, y = rows
    called = []
    monkeypatch.setattr(
        "kstonet.estimators.kstonet.refitted_predictions",
        lambda problem, *_: called.append(len(problem.X)) or np.zeros((len(problem.X), 1)),
    )
    KStoNetRegressor(max_iter=2, random_state=0).fit(X, y)
    assert called == [32]
    for parameters in (
        {"tuning": "none"},  # nothing is chosen
        {"residuals": "loo"},
        {"residuals": None},
    ):
        KStoNetRegressor(max_iter=2, random_state=0, **parameters).fit(X, y)
    assert called == [32]
    assert [refit_folds(n) for n in (FEW_ROWS - 1, FEW_ROWS, MIDDLE_ROWS)] == [10, 5, 0]
    assert [refit_folds(1000, p) for p in (25, 26)] == [0, 5]
    assert [refit_folds(n, 1000) for n in (MANY_ROWS - 1, MANY_ROWS)] == [5, 0]


def test_one_part_says_how_much_residuals_are_too_small(monkeypatch):
    """Residuals of all rows are made larger by the ratio of those of the part; never smaller, and at most twice as large."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(FEW_ROWS, 2))
    y = X[:, 0] + 0.3 * rng.normal(size=FEW_ROWS)
    seen, widths = [], {}

    def predictions(problem, *_):
        better = np.full((len(problem.X), 1), np.nan)
        better[::5] = problem.outputs[::5] - seen[-1] * 0.3 * np.sign(rng.normal(size=(FEW_ROWS // 5, 1)))
        return better

    monkeypatch.setattr("kstonet.estimators.kstonet.refitted_predictions", predictions)
    given = {"kernel": "rbf", "gamma": 0.5, "max_iter": 2, "residuals": "crossfit", "random_state": 0}  # C is chosen
    for size in (0.1, 2.0, 50.0, 500.0):
        seen.append(size)
        model = KStoNetRegressor(**given).fit(X, y)
        widths[size] = float(np.diff(model.predict_interval(X, 0.9)).mean())
    plain = KStoNetRegressor(**given)
    monkeypatch.setattr("kstonet.estimators.kstonet.refit_folds", lambda *_: 0)
    width = float(np.diff(plain.fit(X, y).predict_interval(X, 0.9)).mean())
    assert widths[0.1] == pytest.approx(width)
    assert 1.3 * width < widths[2.0] <= widths[50.0] == widths[500.0]
    assert widths[50.0] == pytest.approx(2 * width, rel=0.1)


def test_one_part_of_more_rows_is_refitted():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(FEW_ROWS, 2))
    found = predicted(X, X[:, 0], folds=5)
    hidden = np.random.default_rng(0).permutation(FEW_ROWS) % 5 == 0
    np.testing.assert_array_equal(np.isnan(found), ~hidden)
    assert np.abs(found[hidden] - X[hidden, 0]).max() < 0.5


def test_a_second_interrupt_leaves_the_refits(rows, monkeypatch):
    """Ctrl-C in a refit is not taken for the end of that small training."""
    X, y = rows
    model = KStoNetRegressor(max_iter=3, random_state=0)
    problem, settings = model._problem(Rows(X, y)), model._settings()
    done = []

    def interrupt(*_, **__):
        done.append(1)
        raise KeyboardInterrupt

    def choose(part):
        monkeypatch.setattr("kstonet.training._Training._record", interrupt)
        return {}

    with pytest.raises(KeyboardInterrupt):
        refitted_predictions(problem, settings, choose, 4, Run())
    assert done == [1]


def test_a_variance_does_not_know_its_own_residual():
    rng = np.random.default_rng(1)
    residuals, means, first = rng.normal(size=(30, 1)), rng.normal(size=(30, 1)), rng.uniform(0.5, 1.0, size=(30, 1))
    data = means, first, np.full((30, 1), 0.01)
    model = NoiseModel.of_residuals(residuals, *data)
    before = left_out_variances(model.left_out(residuals, *data), *data)
    changed = residuals.copy()
    changed[3] *= 10.0
    after = left_out_variances(model.left_out(changed, *data), *data)
    same = np.arange(30) % 10 == 3
    np.testing.assert_allclose(after[same], before[same], rtol=1e-9)
    assert after[~same].mean() > 2 * before[~same].mean()


def test_precomputed_kernels(rows):
    X, y = rows
    K = np.exp(-0.3 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    problem = Problem.of(Rows(K, y, None, pairwise=True), NumericTargets)
    model = KStoNetRegressor(kernel="precomputed", max_iter=2, random_state=0)
    found = refitted_predictions(problem, model._settings(), lambda part: {}, 4, Run())
    assert np.isfinite(found).all()
    assert np.corrcoef(found[:, 0], y)[0, 1] > 0.3
