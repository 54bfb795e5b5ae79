"""Hostile problems: every fit is finite and soon done, or a ValueError that names the cause; no RuntimeWarning from within."""

import re
import time
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from kstonet import KStoNetClassifier, KStoNetRegressor, MultiTargetSVR, StoNetClassifier, StoNetRegressor
from tests.reliability.hostile_fits import failure, uncertified

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = np.sin(X[:, 0]) + 0.1 * RNG.normal(size=40)
LABELS = (Y > 0).astype(int)
SHORT: dict[str, Any] = {"max_iter": 3, "n_average": 2, "random_state": 0}
SECONDS = 20.0  # of processor time; most take a tenth of a second

NETWORKS = [KStoNetRegressor, KStoNetClassifier, StoNetRegressor, StoNetClassifier]


def fitted(cls: Any, rows: Any, y: Any, weights: Any = None, **parameters: Any) -> Any:
    return cls(**(SHORT | parameters)).fit(rows, y, weights)


def answers(model: Any, rows: Any) -> np.ndarray:
    if hasattr(model, "predict_proba"):
        found = [model.predict_proba(rows), model.predict_proba_interval(rows)]
    else:
        found = [model.predict(rows), model.predict_interval(rows), model.predict_var(rows)]
    return np.concatenate([np.ravel(each) for each in found])


ERRORS = {
    "y * 1e154": (KStoNetRegressor, X, Y * 1e154, {}, r"y holds numbers of the size 1\..*e\+154"),
    "y * 1e-200": (KStoNetRegressor, X, Y * 1e-200, {}, "y holds numbers of the size"),
    "X * 1e155": (KStoNetRegressor, X * 1e155, Y, {}, "X holds numbers of the size .* in column 0"),
    "one column": (StoNetRegressor, X * np.array([1.0, 1.0, 1e-155]), Y, {}, "in column 2"),
    "one value": (KStoNetClassifier, np.where(X.max() == X, 1e300, X), LABELS, {}, r"size 1e\+300 in column"),
    "targets": (KStoNetRegressor, X, np.column_stack([Y, Y * 1e200]), {}, "y holds numbers of the size .* in column 1"),
    "large weights": (KStoNetRegressor, X, Y, {"weights": np.full(40, 1e300)}, r"sample_weight holds 1e\+300"),
    "small weights": (KStoNetClassifier, X, LABELS, {"weights": np.full(40, 1e-300)}, "sample_weight holds 1e-300"),
    "weights of an SVR": (MultiTargetSVR, X, Y, {"weights": np.full(40, 1e300)}, "sample_weight holds"),
    "n_jobs": (KStoNetRegressor, X, Y, {"n_jobs": "x"}, "n_jobs='x' must be"),
    "n_jobs zero": (KStoNetRegressor, X, Y, {"n_jobs": 0}, "n_jobs=0 must be"),
    "standardize": (StoNetRegressor, X, Y, {"standardize": "x"}, "standardize='x' must be True or False"),
    "device": (KStoNetRegressor, X, Y, {"device": 7}, "device=7 must be the name of a PyTorch device"),
    "noise": (KStoNetRegressor, X, Y, {"noise_variance": np.inf}, "noise_variance=inf must be"),
    "noise of layers": (KStoNetRegressor, X, Y, {"noise_variance": [(np.inf,)]}, "noise_variance=.* must be"),
    "noise, tiny": (KStoNetRegressor, X, Y, {"noise_variance": 1e-300}, "noise_variance=1e-300 must be"),
    "alpha": (KStoNetRegressor, X, Y, {"alpha": np.inf}, "alpha=inf must be"),
    "step size": (KStoNetRegressor, X, Y, {"step_size": np.inf}, "step_size=inf must be"),
    "temperature": (KStoNetRegressor, X, Y, {"temperature": np.inf}, "temperature=inf must be"),
    "gamma": (KStoNetRegressor, X, Y, {"gamma": np.inf}, "gamma=inf must be"),
    "C": (KStoNetRegressor, X, Y, {"C": 1e300, "tuning": "none"}, r"C=1e\+300 must be"),
    "C, squared": (KStoNetRegressor, X, Y, {"C": 1e-300, "loss": "squared"}, "C=1e-300 must be"),
    "length scales, no numbers": (KStoNetRegressor, X, Y, {"length_scale": [{}]}, "length_scale=.* must be positive"),
    "length scales": (KStoNetRegressor, X, Y, {"length_scale": np.full(3, 1e-300)}, "length_scale=.* must be positive"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_a_problem_beyond_the_numbers_is_refused_by_name(name: str) -> None:
    cls, rows, y, parameters, message = ERRORS[name]
    parameters = dict(parameters)
    weights = parameters.pop("weights", None)
    with pytest.raises(ValueError, match=message):
        cls(**parameters).fit(rows, y, weights)


MANY = np.random.default_rng(1).normal(size=(2_000, 3))
WIDE = RNG.normal(size=(12, 10_000))
HEAVY = RNG.standard_cauchy((40, 3)) ** 3
SPREAD = 10.0 ** RNG.uniform(-12, 12, 40)
PLAIN = {"tuning": "none"}
TABLE: dict[str, tuple[Any, ...]] = {
    **{f"C = {C:g}": (KStoNetRegressor, X, Y, PLAIN | {"C": C}) for C in (1e-6, 1e-3, 1.0, 1e3, 1e6, 1e12)},
    **{f"C = {C:g}, squared": (KStoNetRegressor, X, Y, {"C": C, "loss": "squared"}) for C in (1e-6, 1.0, 1e6, 1e12)},
    "epsilon = 0": (KStoNetRegressor, X, Y, PLAIN | {"epsilon": 0.0, "C": 1e6}),
    "gamma = 1e300": (KStoNetRegressor, X, Y, {"gamma": 1e300}),
    "gamma = 1e-300": (KStoNetRegressor, X, Y, {"gamma": 1e-300}),
    **{f"n = {n}": (KStoNetRegressor, X[:n], Y[:n], {}) for n in (1, 2, 3)},
    "n = 2, classes": (KStoNetClassifier, X[:2], [0, 1], {}),
    "p = 10,000": (KStoNetRegressor, WIDE, Y[:12], {}),
    **{
        f"p = 10,000, linear, {penalty}": (StoNetRegressor, WIDE, Y[:12], {"penalty": penalty, "hidden_layer_sizes": 3})
        for penalty in ("lasso", "ridge", "mcp", "none")
    },
    "p = 10,000, linear classes": (StoNetClassifier, WIDE, LABELS[:12], {"hidden_layer_sizes": 3}),
    "1,000 classes": (KStoNetClassifier, MANY, np.arange(2_000) % 1_000, {"max_iter": 1, "n_average": 1}),
    "as many classes as rows": (KStoNetClassifier, X, np.arange(40), {}),
    "MCP, 15 classes": (KStoNetClassifier, X[:30], np.arange(30) % 15, PLAIN | {"penalty": "mcp"}),
    "SCAD, a class for every row": (KStoNetClassifier, X[:20, :2], np.arange(20), PLAIN | {"penalty": "scad"}),
    "separable": (KStoNetClassifier, X, (X[:, 0] > 0) * 1, {}),
    "separable, no penalty": (KStoNetClassifier, X, (X[:, 0] > 0) * 1, PLAIN | {"penalty": "none"}),
    "heavy tails": (KStoNetRegressor, HEAVY, HEAVY[:, 0] * X[:, 0], {}),
    "heavy tails, linear": (StoNetRegressor, HEAVY, HEAVY[:, 0] * X[:, 0], {}),
    "duplicates": (KStoNetRegressor, np.repeat(X[:2], 20, axis=0), Y, {}),
    "duplicates, support vectors": (KStoNetRegressor, np.repeat(X[:2], 20, axis=0), Y, PLAIN),
    "constant X": (KStoNetRegressor, np.ones((40, 3)), Y, {}),
    "constant X, linear kernel": (KStoNetRegressor, np.ones((40, 3)), Y, PLAIN | {"kernel": "linear", "weights": SPREAD}),
    "constant X, linear kernel, classes": (KStoNetClassifier, np.ones((40, 3)), LABELS, PLAIN | {"kernel": "linear"}),
    "constant y": (KStoNetRegressor, X, np.ones(40), {}),
    "weights over 24 orders": (KStoNetRegressor, X, Y, {"weights": SPREAD}),
    "weights over 24 orders, support vectors": (KStoNetRegressor, X, Y, PLAIN | {"weights": SPREAD}),
    "weights over 24 orders, classes": (KStoNetClassifier, X, LABELS, {"weights": SPREAD}),
    "weights over 24 orders, linear": (StoNetRegressor, X, Y, {"weights": SPREAD}),
    "y * 1e130": (KStoNetRegressor, X, Y * 1e130, {}),
    "X * 1e130": (KStoNetRegressor, X * 1e130, Y, {}),
    "y * 1e-130, linear": (StoNetRegressor, X, Y * 1e-130, {}),
    "far from zero": (KStoNetRegressor, X + 1e9, Y + 1e9, {}),
    "float16": (KStoNetRegressor, X.astype(np.float16), Y.astype(np.float16), {}),
    "booleans": (KStoNetClassifier, X > 0, Y > 0, {}),
    "whole numbers": (StoNetRegressor, (100 * X).astype(int), (100 * Y).astype(int), {}),
    "alpha = 1e300": (KStoNetRegressor, X, Y, {"alpha": 1e300}),
}


# What has no solution within the tolerance, and the cause that the warning names.
UNSOLVED = {"C = 1e+12": "use a smaller C"}


def check_problem(name: str) -> None:
    """A problem of the table is finite, certified and soon done."""
    cls, rows, y, parameters = TABLE[name]
    started = time.process_time()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        warnings.simplefilter("error", RuntimeWarning)
        model = fitted(cls, rows, y, **parameters)
        found = answers(model, rows[:200])
    assert np.isfinite(found).all()
    assert time.process_time() - started < SECONDS
    failures = {str(each.message) for each in said if issubclass(each.category, ConvergenceWarning)}
    if name in UNSOLVED:
        assert failures
        assert all(re.search(UNSOLVED[name], each) for each in failures), failures
    else:
        assert not failures  # every solver warns where it misses its tolerance
        assert uncertified(model) == ""


@pytest.mark.usefixtures(
    "few_folds", "few_steps"
)  # hostile as they are; tests/long/test_hostile_fits.py has all folds and steps
@pytest.mark.parametrize("name", TABLE)
def test_hostile_problems_are_finite_and_certified_in_bounded_time(name: str) -> None:
    check_problem(name)


@pytest.mark.parametrize("number", range(15))
def test_whole_fits_at_random(number: int) -> None:
    """The first of the 10,000 of tests/long/test_hostile_fits.py."""
    assert failure(number) is None


@pytest.mark.parametrize("weight", [1e-29, 1e29])
def test_a_choice_does_not_depend_on_the_unit_of_the_weights(weight: float) -> None:
    """Where C is chosen, only ratios of weights matter; the choice once failed where all were 1e29."""
    ones, scaled = (KStoNetClassifier(**SHORT).fit(X, LABELS, np.full(40, each)) for each in (1.0, weight))
    np.testing.assert_allclose(scaled.predict_proba(X), ones.predict_proba(X), rtol=1e-6)


@pytest.mark.parametrize("cls", [KStoNetRegressor, MultiTargetSVR])
@pytest.mark.parametrize("error", [FloatingPointError, OverflowError, np.linalg.LinAlgError])
def test_errors_of_arithmetic_do_not_reach_users(cls: Any, error: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*args: Any, **options: Any) -> None:
        raise error("inside")

    for place in ("kstonet.estimators.multi_target_svr.solve_svr", "kstonet.estimators.kstonet.fast_choice"):
        monkeypatch.setattr(place, failing)
    with pytest.raises(ValueError, match=r"left the range of floating-point numbers \(inside\)") as caught:
        cls().fit(X, Y)
    assert type(caught.value) is ValueError
