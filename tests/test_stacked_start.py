"""A regression starts as the mean of its ridge regressions, and no training throws a kernel away."""

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Lasso
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel
from sklearn.preprocessing import KernelCenterer

from kstonet import KStoNetRegressor
from kstonet.initialisation import TrainingRows
from kstonet.layers.activations import get_activation
from kstonet.layers.dense import DenseLayer
from kstonet.problem import Problem, Rows
from kstonet.settings import KernelLayerSettings, TrainingSettings
from kstonet.stacked_start import is_stacked, stacked_start
from kstonet.targets import NumericTargets

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


def mean_of_regressions(problem):
    """Of scikit-learn, with centred kernels in place of intercepts, weighted by the units."""
    kernels = {"rbf": rbf_kernel(problem.X, gamma=GAMMA), "laplacian": laplacian_kernel(problem.X, gamma=GAMMA)}
    y, means = problem.outputs[:, 0], []
    for name in UNITS:
        K = KernelCenterer().fit_transform(kernels[name])
        centred = KernelRidge(alpha=RIDGES[name], kernel="precomputed").fit(K, y - y.mean())
        means.append(centred.predict(K) + y.mean())
    return np.mean(means, axis=0)


@pytest.mark.parametrize("activation", ["softplus", "relu", "gelu"])
def test_the_start_is_the_mean_of_the_regressions(activation):
    problem, network = network_of(activation=activation)
    rows = TrainingRows(problem.X, None, problem.outputs, None)
    started, (values,) = stacked_start(np.random.default_rng(1), network, rows, get_activation(activation))
    start, mean = started.forward()[-1][:, 0], mean_of_regressions(problem)
    assert np.sqrt(np.mean((start - mean) ** 2)) < 0.03 * mean.std()
    signs = np.sign(values.T @ problem.outputs[:, 0])
    assert signs[:4].sum() == 0
    assert signs[4:].sum() == 0


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
