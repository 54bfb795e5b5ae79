import numpy as np
import pytest

from kstonet import KStoNetRegressor
from kstonet.tuning.automatic import automatic_choice
from kstonet.tuning.judging import Rows
from kstonet.tuning.stationary import FAMILIES
from kstonet.tuning.warping import Bends, bent


def standard(values):
    return (values - values.mean(axis=0)) / values.std(axis=0)


def early_and_late(n, seed=0):
    """What a month means early and late, beside a feature with two values and one that does nothing."""
    rng = np.random.default_rng(seed)
    months = rng.uniform(0.02, 12, size=n)
    X = np.column_stack([months, rng.integers(0, 2, size=n), rng.normal(size=n)])
    return X, np.sin(3 * np.log(months)) * (0.5 + X[:, 1]) + 0.05 * rng.normal(size=n)


@pytest.mark.parametrize("groups", [[0, 1, 2], [0, 1, 0]])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("family", [name for name, family in FAMILIES.items() if not family.absolute])
def test_the_gradient_is_that_of_the_objective(family, weighted, groups):
    rng = np.random.default_rng(1)
    X, Y = rng.normal(size=(40, 3)), rng.normal(size=(40, 2))
    weights = rng.uniform(0.5, 2.0, size=40) if weighted else None
    scales = len(set(groups))
    start = np.zeros(scales), np.full(3, 0.1), np.full(3, 2.0), np.full(3, 0.7), np.array(groups)
    problem = Bends(X, Y, weights, FAMILIES[family], *start)
    at = rng.normal(scale=0.3, size=scales + 7)
    step = 1e-5 * np.eye(scales + 7)
    differences = [(problem.objective(at + one)[0] - problem.objective(at - one)[0]) / 2e-5 for one in step]
    np.testing.assert_allclose(problem.objective(at)[1], differences, rtol=1e-5, atol=1e-5)


def test_the_candidate_sees_what_its_kernel_sees():
    X, y = early_and_late(150)
    X, Y = standard(X), standard(y[:, None])
    every = Rows(X, Y, None)
    start = every.learned(every.best_width(FAMILIES["matern32"]), "evidence", 10)
    seen, candidate = bent(every, np.arange(100), start)
    np.testing.assert_allclose(candidate.kernel(X, X), candidate.family.matrix(seen.X, candidate.scales), atol=1e-9)
    assert np.isfinite(seen.view.squash[0]).all()
    assert not np.isfinite(seen.view.squash[1][1])  # two values: nothing to bend
    np.testing.assert_allclose(seen.X.std(axis=0), 1.0)


def test_features_that_cannot_be_bent_are_left_alone():
    X = standard(np.random.default_rng(0).integers(0, 2, size=(50, 2)).astype(float))
    every = Rows(X, X[:, :1].copy(), None)
    assert bent(every, np.arange(50), every.best_width(FAMILIES["matern32"])) is None
    assert bent(every, np.arange(50), every.best_width(FAMILIES["laplacian"])) is None


def test_a_feature_that_acts_by_its_logarithm_is_bent():
    X, y = early_and_late(900)
    train, new = slice(0, 300), slice(300, None)
    model = KStoNetRegressor(residuals=None, random_state=0).fit(X[train], y[train])
    assert "features are bent" in model.tuning_["reason"]
    error = np.sqrt(np.mean((model.predict(X[new]) - y[new]) ** 2)) / y.std()
    assert error < 0.12  # features as they are: 0.2


def test_features_that_act_straight_stay_as_they_are():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    choice = automatic_choice(X, standard((np.sin(2 * X[:, 0]) + X[:, 1] + 0.2 * rng.normal(size=300))[:, None]))
    assert choice.kernel.squash is None
    assert "bent" not in choice.reason
