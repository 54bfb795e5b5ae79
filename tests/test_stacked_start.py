"""A regression starts as the mean of its ridge regressions, rests there unless iterations help, and throws no kernel away."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Lasso
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel
from sklearn.preprocessing import KernelCenterer

from kstonet import KStoNetRegressor
from kstonet.imputation.chain import ChainSettings
from kstonet.initialisation import TrainingRows
from kstonet.iro import IROSettings, IROState, iro
from kstonet.layers.activations import get_activation
from kstonet.layers.dense import DenseLayer
from kstonet.problem import Problem, Rows
from kstonet.settings import KernelLayerSettings, TrainingSettings
from kstonet.stacked_start import is_stacked, stacked_start
from kstonet.targets import NumericTargets
from kstonet.uncertainty.cross_fitting import cross_fitted

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 3))
Y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * RNG.normal(size=150)
RIDGES = {"rbf": 0.5, "laplacian": 0.1}
GAMMA = 0.4
UNITS = ["rbf"] * 4 + ["laplacian"] * 12


def network_of(sizes=(16,), activation="softplus", kernels=UNITS, targets=Y):
    """A problem and its network before the first refit."""
    problem = Problem.of(Rows(X, targets), NumericTargets)
    first = KernelLayerSettings(
        kernel=kernels, gamma=GAMMA, C=[1.0 / RIDGES[name] for name in kernels], loss="squared", epsilon=0.01
    )
    settings = TrainingSettings(first, hidden_layer_sizes=sizes, activation=activation)
    return problem, settings.new_network(problem)


def mean_of_regressions(problem, rows=slice(None)):
    """Of scikit-learn, fitted on some rows, with centred kernels in place of intercepts, weighted by the units."""
    kernels = {"rbf": rbf_kernel(problem.X, gamma=GAMMA), "laplacian": laplacian_kernel(problem.X, gamma=GAMMA)}
    y, means = problem.outputs[rows, 0], []
    for name in UNITS:
        centre = KernelCenterer().fit(kernels[name][rows][:, rows])
        own = centre.transform(kernels[name][rows][:, rows])
        centred = KernelRidge(alpha=RIDGES[name], kernel="precomputed").fit(own, y - y.mean())
        means.append(centred.predict(centre.transform(kernels[name][:, rows])) + y.mean())
    return np.mean(means, axis=0)


def started(activation="softplus"):
    """The problem, its rows, and the state that training starts from."""
    problem, network = network_of(activation=activation)
    rows = TrainingRows(problem.X, None, problem.outputs, None)
    rng = np.random.default_rng(1)
    return problem, rows, IROState(0, *stacked_start(network, rows), dict(rng.bit_generator.state), rest_after=0)


@pytest.mark.parametrize("activation", ["softplus", "relu", "gelu"])
def test_the_start_is_the_mean_of_the_regressions(activation):
    problem, _, state = started(activation)
    mean = mean_of_regressions(problem)
    assert state.network.forward()[-1][:, 0] == pytest.approx(mean, abs=1e-3 * mean.std())
    signs = np.sign(state.latents[0].T @ problem.outputs[:, 0])
    assert signs[:4].sum() == 0
    assert signs[4:].sum() == 0


def test_iterations_lead_to_the_regression_with_the_sum_of_the_kernels():
    """At rest the coefficients of every unit are the residual times the unit's weight over the ridge of its kernel."""
    problem, _, state = started()
    loop = IROSettings(chain=ChainSettings(n_steps=60), temperature=0.0)
    chain = iro(None, problem.outputs, replace(state, rest_after=None), loop)
    for _ in range(60):
        end = next(chain)
    residual = problem.outputs[:, 0] - end.network.forward()[-1][:, 0]
    ridges = np.array([RIDGES[name] for name in UNITS])
    pulls = end.network.first.coef * (ridges / end.network.head.weights[0])[:, None]
    together = pulls[:4].mean(axis=0), pulls[4:].mean(axis=0)  # softplus bends: the units of either sign balance that
    for pull in together:
        assert np.corrcoef(pull, residual)[0, 1] > 0.98
    sizes = [pull.std() for pull in together]
    assert sizes[0] == pytest.approx(sizes[1], rel=0.25)  # their ridges differ by a factor of five


def test_a_network_that_rests_is_the_mean_of_the_regressions():
    parameters = {"kernel": UNITS, "gamma": GAMMA, "C": [1.0 / RIDGES[name] for name in UNITS], "loss": "squared"}
    model = KStoNetRegressor(tuning="none", hidden_layer_sizes=16, max_iter=4, random_state=0, **parameters).fit(X, Y)
    losses = [record["loss"] for record in model.history_]
    assert losses == [losses[0]] * 4
    expected = mean_of_regressions(Problem.of(Rows(X, Y), NumericTargets)) * Y.std() + Y.mean()
    assert model.predict(X) == pytest.approx(expected, abs=1e-3 * Y.std())


def test_iterations_go_on_where_they_help():
    """Half of these units have a ridge with which they say next to nothing, and hold the mean half way back."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(400, 2))
    y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=400)
    parameters = {"kernel": ["rbf"] * 4 + ["matern32"] * 4, "C": [100.0] * 4 + [1e-4] * 4, "gamma": 0.4, "loss": "squared"}
    model = KStoNetRegressor(8, tuning="none", max_iter=8, random_state=0, residuals=None, **parameters).fit(X[:200], y[:200])
    assert len({record["loss"] for record in model.history_}) >= 3
    assert model.score(X[200:], y[200:]) > 0.95


def test_other_activations_have_a_way_to_go():
    """Two units of tanh are no straight line, so the start is not the mean of the regressions."""
    parameters = {"kernel": UNITS, "gamma": GAMMA, "C": [1.0 / RIDGES[name] for name in UNITS], "loss": "squared"}
    model = KStoNetRegressor(16, "tanh", tuning="none", max_iter=3, random_state=0, residuals=None, **parameters).fit(X, Y)
    assert len({record["loss"] for record in model.history_}) == 3


def test_left_out_predictions_of_a_network_that_rests_are_those_of_the_regressions():
    problem, _, state = started()
    settings = IROSettings()
    hidden = np.arange(0, 150, 4)
    kept = np.setdiff1d(np.arange(150), hidden)
    found = cross_fitted(state, None, problem.outputs, settings, None, part=hidden)[:, 0]
    expected = mean_of_regressions(problem, kept)
    assert found[hidden] == pytest.approx(expected[hidden], abs=2e-3)
    assert found[kept] == pytest.approx(state.network.forward()[-1][kept, 0])
    fold_of = np.random.default_rng(0).permutation(150) % 5
    every = cross_fitted(state, None, problem.outputs, settings, None, folds=5)[:, 0]
    for fold in range(5):
        own = fold_of == fold
        assert every[own] == pytest.approx(mean_of_regressions(problem, np.flatnonzero(~own))[own], abs=2e-3)


def test_only_one_layer_of_regressions_is_a_stack():
    assert is_stacked(network_of()[1])
    assert is_stacked(network_of(kernels=["rbf"] * 16)[1])
    assert not is_stacked(network_of(sizes=(16, 4))[1])
    assert not is_stacked(network_of(sizes=(3,), kernels=["rbf", "rbf", "laplacian"])[1])  # no unit of either sign for each
    assert not is_stacked(network_of(targets=np.column_stack([Y, X[:, 0]]))[1])


def test_every_kernel_keeps_its_share():
    """A lasso that is not anchored leaves four of these sixteen units after twelve iterations."""
    parameters = {"kernel": UNITS, "gamma": GAMMA, "C": [1.0 / RIDGES[name] for name in UNITS], "loss": "squared"}
    model = KStoNetRegressor(tuning="none", hidden_layer_sizes=16, max_iter=12, n_average=1, random_state=0, **parameters)
    head = model.fit(X, Y).trained_.uppers[-1][-1]
    shares = np.abs(head.weights[0])
    assert shares[:4].sum() / shares.sum() == pytest.approx(0.25, abs=0.05)


def test_a_refit_solves_the_lasso_around_its_anchor():
    features, anchor = RNG.normal(size=(80, 5)), np.array([[1.0, -0.5, 0.0, 0.3, 0.0]])
    targets = features @ (anchor[0] + np.array([0.0, 0.0, 1.0, 0.0, 0.0])) + 0.1 * RNG.normal(size=80) + 2.0
    layer = DenseLayer(np.zeros((1, 5)), np.zeros(1), 1.0, get_activation("identity"), "lasso", 0.05, anchor=anchor)
    fitted = layer.refit(features, targets[:, None])
    expected = Lasso(alpha=0.05, tol=1e-10).fit(features, targets - features @ anchor[0])
    assert fitted.weights[0] == pytest.approx(anchor[0] + expected.coef_, abs=1e-5)
    assert fitted.intercept[0] == pytest.approx(expected.intercept_, abs=1e-5)
    free = np.append(True, expected.coef_ != 0.0)  # weights at their anchor are not estimated
    covariance = fitted.uncertainty(features, targets[:, None]).covariance[0, :, 0, :]
    assert np.array_equal(np.diagonal(covariance) > 0.0, free)
