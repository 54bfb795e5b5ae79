"""Every layer: scores against finite differences, densities that integrate to one, refits by their optimum."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit, softmax
from sklearn.metrics import log_loss, mean_squared_error, root_mean_squared_error

from kstonet.gram import DenseGram, make_kernel
from kstonet.layers.activations import ACTIVATIONS, get_activation
from kstonet.layers.base import FirstLayer, LayerUncertainty, UpperLayer
from kstonet.layers.dense import DenseLayer
from kstonet.layers.heads import CategoricalHead
from kstonet.layers.kernel import KernelLayer, UnitGroup, svr_noise_variance
from kstonet.layers.linear import LinearFirstLayer
from kstonet.layers.ridge import RidgeLayer
from kstonet.layers.ridge_map import RidgeMap
from kstonet.network import Network

RNG = np.random.default_rng(0)
N = 12


def finite_difference(function, at, step=1e-6):
    """Gradient of Σ function(at), which is right row by row because rows are independent."""
    gradient = np.zeros_like(at)
    for column in range(at.shape[1]):
        shift = np.zeros_like(at)
        shift[:, column] = step
        gradient[:, column] = (function(at + shift) - function(at - shift)) / (2 * step)
    return gradient


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activation_slopes(name):
    activation = get_activation(name)
    x = np.array([-30.0, -3.0, -0.7, 0.3, 1.1, 4.0, 30.0])
    numeric = (activation.value(x + 1e-6) - activation.value(x - 1e-6)) / 2e-6
    np.testing.assert_allclose(activation.slope(x), numeric, atol=1e-7)
    grid = np.linspace(-20, 20, 4001)
    assert np.abs(activation.slope(grid)).max() <= activation.steepest + 1e-12
    assert np.isfinite(activation.value(np.array([-1e4, 1e4]))).all()
    far = np.concatenate([x, [-1e4, -30.0, 0.0, 30.0, 1e4]])
    value, slope = activation.value_and_slope(far)
    np.testing.assert_allclose(value, activation.value(far), rtol=1e-14)
    np.testing.assert_allclose(slope, activation.slope(far), rtol=1e-13, atol=1e-300)


def test_unknown_activation_is_named():
    with pytest.raises(ValueError, match="activation='tanhh'"):
        get_activation("tanhh")


def test_softplus_and_its_slope_are_exact():
    x = np.linspace(-800.0, 800.0, 2001)
    value, slope = get_activation("softplus").value_and_slope(x)
    np.testing.assert_allclose(value, np.logaddexp(0.0, x), rtol=1e-15, atol=3e-16)
    np.testing.assert_allclose(slope, expit(x), rtol=1e-14, atol=1e-300)
    np.testing.assert_array_equal(value, get_activation("softplus").value(x))


@pytest.mark.parametrize("name", ["tanh", "softplus", "sigmoid", "gelu", "identity"])
def test_dense_scores(name):
    layer = DenseLayer(RNG.normal(size=(3, 4)), RNG.normal(size=3), 0.3, get_activation(name))
    inputs, outputs = RNG.normal(size=(N, 4)), RNG.normal(size=(N, 3))
    np.testing.assert_allclose(
        layer.score_input(inputs, outputs),
        finite_difference(lambda v: layer.log_density(v, outputs), inputs),
        rtol=1e-5,
        atol=1e-6,
    )
    np.testing.assert_allclose(
        layer.score_output(inputs, outputs),
        finite_difference(lambda v: layer.log_density(inputs, v), outputs),
        rtol=1e-5,
        atol=1e-6,
    )


@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize("name", ["tanh", "softplus"])
def test_categorical_scores(classes, name):
    rows = 1 if classes == 2 else classes
    head = CategoricalHead(RNG.normal(size=(rows, 4)), RNG.normal(size=rows), classes, 0.2, get_activation(name))
    inputs, labels = RNG.normal(size=(N, 4)), RNG.integers(0, classes, size=N)
    np.testing.assert_allclose(
        head.score_input(inputs, labels), finite_difference(lambda v: head.log_density(v, labels), inputs), rtol=1e-5, atol=1e-6
    )
    assert head.mean(inputs).shape == (N, classes)


def kernel_layer(units=3, epsilon=0.1, groups=1):
    X = np.random.default_rng(1).normal(size=(N, 2))
    members = np.array_split(np.arange(units), groups)
    made = tuple(UnitGroup(DenseGram(X, make_kernel("rbf", X, gamma=0.5 + k)), part) for k, part in enumerate(members))
    layer = KernelLayer(made, np.linspace(1.0, 4.0, units), np.full(units, epsilon))
    return layer.refit(None, np.random.default_rng(2).normal(size=(N, units)))


@pytest.mark.parametrize("groups", [1, 3])
def test_kernel_scores_and_groups(groups):
    layer = kernel_layer(groups=groups)
    outputs = layer.mean() + 0.5 * RNG.normal(size=(N, 3))
    np.testing.assert_allclose(
        layer.score_output(None, outputs),
        finite_difference(lambda v: layer.log_density(None, v), outputs),
        rtol=1e-5,
        atol=1e-5,
    )
    for group in layer.groups:
        values = group.gram.product(layer.coef[group.units]) + layer.intercept[group.units][:, None]
        np.testing.assert_allclose(layer.mean()[:, group.units], values.T, atol=1e-9)


@pytest.mark.parametrize(("C", "epsilon"), [(1.0, 0.1), (10.0, 0.01), (5.0, 1.0)])
def test_svr_density_integrates_to_one_and_has_the_papers_variance(C, epsilon):
    layer = KernelLayer((), np.array([C]), np.array([epsilon]), fitted=np.zeros((1, 1)))

    def density(x):
        return float(np.exp(layer.log_density(None, np.array([[x]])))[0])

    reach = epsilon + 40 / C
    assert quad(density, -reach, reach, points=[-epsilon, epsilon], limit=200)[0] == pytest.approx(1.0, abs=1e-8)
    second = quad(lambda x: x * x * density(x), -reach, reach, points=[-epsilon, epsilon], limit=200)[0]
    assert svr_noise_variance(np.array(C), np.array(epsilon)) == pytest.approx(second, rel=1e-6)


def test_kernel_layer_needs_a_refit_first():
    layer = kernel_layer()
    with pytest.raises(ValueError, match="refit it first"):
        KernelLayer(layer.groups, layer.C, layer.epsilon).mean()


def test_curvature_bounds_the_gauss_newton_matrix():
    layer = DenseLayer(RNG.normal(size=(3, 4)), np.zeros(3), 0.3, get_activation("tanh"))
    inputs = RNG.normal(size=(N, 4))
    bound = layer.curvature_input(inputs)
    for x, limit in zip(inputs, bound, strict=True):
        J = layer.weights * layer.activation.slope(x)
        assert np.linalg.eigvalsh(J.T @ J / layer.variance).max() <= limit + 1e-9


def test_network_conditionals_add_both_neighbours():
    first = kernel_layer(units=3)
    middle = DenseLayer(RNG.normal(size=(2, 3)), RNG.normal(size=2), 0.2, get_activation("tanh"))
    head = DenseLayer(RNG.normal(size=(1, 2)), RNG.normal(size=1), 0.1, get_activation("tanh"))
    network = Network((first, middle, head))
    y = RNG.normal(size=(N, 1))
    latents = (first.mean() + 0.7 * RNG.normal(size=(N, 3)), RNG.normal(size=(N, 2)))
    conditionals = network.conditionals(None, y)

    def joint(values):
        return first.log_density(None, values[0]) + middle.log_density(values[0], values[1]) + head.log_density(values[1], y)

    for i in range(2):

        def along(v, i=i):
            return joint(tuple(v if k == i else latents[k] for k in range(2)))

        np.testing.assert_allclose(conditionals.score(i, latents), finite_difference(along, latents[i]), rtol=1e-4, atol=1e-4)
        moved = tuple(v + 0.1 if k == i else v for k, v in enumerate(latents))
        change = conditionals.log_density(i, moved) - conditionals.log_density(i, latents)
        np.testing.assert_allclose(change, joint(moved) - joint(latents), rtol=1e-9, atol=1e-9)


def test_versions_refitted_together_are_those_refitted_alone():
    """Two versions of a layer with two kernels, other outputs and other weights: certified to 1e-8, so equal to about 1e-4."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    groups = tuple(
        UnitGroup(DenseGram(X, make_kernel("rbf", X, gamma=gamma)), np.array(units))
        for gamma, units in ((0.5, [0, 2]), (1.0, [1]))
    )
    start = KernelLayer(groups, np.array([1.0, 5.0, 2.0]), np.array([0.1, 0.05, 0.0]), tol=1e-8)
    outputs = [rng.normal(size=(40, 3)) for _ in range(2)]
    weights = [None, rng.uniform(size=40) * (rng.uniform(size=40) < 0.7)]
    layers = [start.refit(None, values) for values in (outputs[1], outputs[0])]
    together = start.refit_versions(layers, None, outputs, weights, support=True)
    for layer, values, weight in zip(together, outputs, weights, strict=True):
        np.testing.assert_allclose(layer.mean(), start.refit(None, values, weight).mean(), atol=2e-3)
        assert all(solution.tight for solution in layer.solutions)
        if weight is not None:
            assert (layer.coef[:, weight == 0] == 0).all()


# -- every layer answers the questions of its protocol -----------------------------------------------------------------------


def upper(kind, activation="tanh"):
    """A layer of four inputs with weights that no refit made, and outputs of the kind it models."""
    rng = np.random.default_rng(3)
    if kind == "dense":
        return DenseLayer(rng.normal(size=(3, 4)), rng.normal(size=3), 0.3, get_activation(activation)), rng.normal(size=(N, 3))
    classes = int(kind[-1])
    rows = 1 if classes == 2 else classes
    head = CategoricalHead(rng.normal(size=(rows, 4)), rng.normal(size=rows), classes, 0.2, get_activation(activation))
    return head, rng.integers(0, classes, size=N)


UPPERS = ["dense", "classes2", "classes3"]


@pytest.mark.parametrize("kind", UPPERS)
def test_slopes_of_the_mean_by_finite_differences(kind):
    layer, _ = upper(kind)
    inputs = RNG.normal(size=(N, 4))
    slope = layer.slope(inputs)
    own = layer.mean(inputs)[:, -slope.shape[1] :]  # the first logit of two classes is zero, and has no row
    assert slope.shape == (N, own.shape[1], 4)
    for k in range(own.shape[1]):
        column = k - own.shape[1]
        numeric = finite_difference(lambda v, column=column: layer.mean(v)[:, column], inputs)
        np.testing.assert_allclose(slope[:, k], numeric, rtol=1e-5, atol=1e-7)


def test_losses_are_those_of_scikit_learn():
    dense, outputs = upper("dense")
    prediction = dense.mean(RNG.normal(size=(N, 4)))
    assert dense.loss(prediction, outputs) == pytest.approx(mean_squared_error(outputs, prediction))
    assert dense.residual(prediction, outputs) == pytest.approx(root_mean_squared_error(outputs.ravel(), prediction.ravel()))
    for kind in UPPERS[1:]:
        head, labels = upper(kind)
        logits = head.mean(RNG.normal(size=(N, 4)))
        p = softmax(logits, axis=1)
        assert head.loss(logits, labels) == pytest.approx(log_loss(labels, p, labels=range(head.n_classes)))
        assert head.residual(np.log(np.eye(head.n_classes)[labels] + 1e-300), labels) == pytest.approx(
            1e-3
        )  # none, but for a floor
        assert head.residual(np.zeros_like(logits), labels) == pytest.approx(1 - 1 / head.n_classes)  # all alike


@pytest.mark.parametrize("kind", UPPERS)
def test_upper_layers_satisfy_their_protocol(kind):
    layer, outputs = upper(kind)
    inputs = RNG.normal(size=(N, 4))
    assert isinstance(layer, UpperLayer)
    uncertainty = layer.uncertainty(inputs, outputs)
    assert isinstance(uncertainty, LayerUncertainty)
    assert (uncertainty.n_inputs, uncertainty.n_outputs) == (4, layer.n_outputs)
    assert layer.with_penalty(0.5, 1.0, N).alpha == 0.5
    weak, strong = (layer.with_penalty(None, residual, N).alpha for residual in (0.1, 1.0))
    assert strong == pytest.approx(10 * weak)  # the automatic penalty follows the residual


def test_first_layers_answer_at_new_rows_what_they_answer_at_their_own():
    rng = np.random.default_rng(4)
    X, outputs = rng.normal(size=(30, 2)), rng.normal(size=(30, 3))
    gram = DenseGram(X, make_kernel("rbf", X, gamma=0.5))
    identity = get_activation("identity")
    kernel = KernelLayer((UnitGroup(gram, np.arange(3)),), np.full(3, 2.0), np.full(3, 0.1))
    layers: list[tuple[FirstLayer, np.ndarray | None]] = [
        (kernel, None),
        (RidgeLayer(kernel.groups, (RidgeMap(gram, 0.5),)), None),
        (LinearFirstLayer(np.zeros((3, 2)), np.zeros(3), 1.0, identity), X),
        (LinearFirstLayer(np.zeros((3, 30)), np.zeros(3), 1.0, identity, gram=gram), gram.columns(np.arange(30))),
    ]
    for layer, inputs in layers:
        first = layer.refit(inputs, outputs)
        second = layer.refit(inputs, 2 * outputs)
        np.testing.assert_allclose(first.values_at(X)(second), second.mean(inputs), atol=1e-8)
        (values,) = [values for _, values, _ in second.expansion([first, second], inputs).blocks(X)]
        np.testing.assert_allclose(values, [first.mean(inputs), second.mean(inputs)], atol=1e-8)
        assert 0.0 < first.temperature() <= 1.0
        assert first.noise_above(0.2, 1.0) < first.noise_above(0.4, 1.0)
