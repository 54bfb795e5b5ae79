"""Forward and backward pass, losses, optimisers: each against a slow or hand-computed oracle."""

import numpy as np
import pytest
from sklearn.metrics import log_loss, mean_squared_error

from experiments.baselines.feedforward import FeedForward, count_parameters, dropout_masks, split
from experiments.baselines.losses import CrossEntropy, SquaredError
from experiments.baselines.optimizers import SGD, Adam, Momentum, make_optimizer, shrink
from kstonet.layers.activations import ACTIVATIONS, get_activation
from kstonet.scaling import Scaler

SIZES = (4, 5, 3, 2)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def targets_for(loss, rng, n):
    return rng.normal(size=(n, 2)) if isinstance(loss, SquaredError) else np.eye(2)[rng.integers(2, size=n)]


def central_differences(function, theta, step=1e-6):
    result = np.empty_like(theta)
    for j in range(len(theta)):
        up, down = theta.copy(), theta.copy()
        up[j] += step
        down[j] -= step
        result[j] = (function(up) - function(down)) / (2 * step)
    return result


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dropout", [0.0, 0.4])
@pytest.mark.parametrize("loss", [SquaredError(), CrossEntropy()], ids=["squared", "cross-entropy"])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_backpropagation_is_the_gradient(activation, loss, dropout, weighted, rng):
    X, targets = rng.normal(size=(7, 4)), targets_for(loss, rng, 7)
    weights = rng.uniform(0.0, 2.0, size=7) if weighted else None
    network = FeedForward.random(SIZES, get_activation(activation), rng)
    masks = dropout_masks(SIZES, dropout, rng, 7, np.dtype(float)) if dropout else None

    def objective(theta):
        return loss.value(FeedForward(SIZES, network.activation, theta).trace(X, masks).outputs, targets, weights)

    trace = network.trace(X, masks)
    exact = network.gradient(trace, loss.gradient(trace.outputs, targets, weights))
    np.testing.assert_allclose(exact, central_differences(objective, network.theta), atol=1e-8)


def test_forward_is_the_formula(rng):
    network = FeedForward.random((3, 4, 2), get_activation("tanh"), rng)
    (W1, b1), (W2, b2) = network.layers
    X = rng.normal(size=(6, 3))
    by_hand = [W2.T @ np.tanh(W1.T @ x + b1) + b2 for x in X]
    np.testing.assert_allclose(network.outputs(X), by_hand)


def test_blocks_do_not_change_the_outputs(rng, monkeypatch):
    network, X = FeedForward.random((3, 4, 2), get_activation("tanh"), rng), rng.normal(size=(11, 3))
    whole = network.outputs(X)
    monkeypatch.setattr("experiments.baselines.feedforward.BLOCK_VALUES", 8)
    np.testing.assert_allclose(network.outputs(X), whole)


def test_parameters_are_views_of_one_vector():
    theta = np.arange(float(count_parameters((2, 3, 1))))
    (W1, b1), (W2, b2) = split((2, 3, 1), theta)
    assert (W1.shape, b1.shape, W2.shape, b2.shape) == ((2, 3), (3,), (3, 1), (1,))
    theta += 1.0
    assert W1[0, 0] == 1.0
    assert b2[0] == len(theta)
    mask = FeedForward((2, 3, 1), get_activation("tanh"), theta).is_weight()
    assert mask.tolist() == [True] * 6 + [False] * 3 + [True] * 3 + [False]


def test_initial_parameters_lie_within_one_over_root_inputs(rng):
    network = FeedForward.random((400, 50, 1), get_activation("tanh"), rng)
    for weights, biases in network.layers:
        bound = 1 / np.sqrt(len(weights))
        assert np.abs(weights).max() <= bound
        assert np.abs(biases).max() <= bound
    assert np.abs(network.layers[0][0]).max() > 0.99 / 20


def test_dropout_drops_at_its_rate_and_keeps_the_mean(rng):
    (mask,) = dropout_masks((100, 1), 0.3, rng, 2000, np.dtype(float))
    assert set(np.unique(mask)) == {0.0, 1 / 0.7}
    assert abs((mask == 0).mean() - 0.3) < 4 * np.sqrt(0.21 / mask.size)  # four standard errors
    assert abs(mask.mean() - 1.0) < 4 * np.sqrt(0.3 / 0.7 / mask.size)


def test_a_thinned_network_is_a_pass_with_that_mask(rng):
    network, X = FeedForward.random(SIZES, get_activation("relu"), rng), rng.normal(size=(5, 4))
    masks = dropout_masks(SIZES, 0.5, rng, 1, np.dtype(float))
    np.testing.assert_allclose(network.thinned(masks).outputs(X), network.trace(X, masks).outputs)


def test_losses_are_those_of_scikit_learn(rng):
    outputs, weights = rng.normal(size=(9, 3)), rng.uniform(0.5, 1.5, size=9)
    weights /= weights.mean()
    targets = rng.normal(size=(9, 3))
    ours = SquaredError().value(outputs, targets, weights)
    assert ours == pytest.approx(3 * mean_squared_error(targets, outputs, sample_weight=weights))
    codes = rng.integers(3, size=9)
    probabilities = np.exp(outputs) / np.exp(outputs).sum(axis=1, keepdims=True)
    ours = CrossEntropy().value(outputs, np.eye(3)[codes], weights)
    assert ours == pytest.approx(log_loss(codes, probabilities, sample_weight=weights, labels=[0, 1, 2]))


def test_cross_entropy_survives_large_outputs():
    outputs, targets = np.array([[2000.0, -2000.0]]), np.array([[0.0, 1.0]])
    assert CrossEntropy().value(outputs, targets, None) == 4000.0
    np.testing.assert_array_equal(CrossEntropy().gradient(outputs, targets, None), [[1.0, -1.0]])


# Two steps with the gradients (1, -2) and then (3, 0), from (1, 1), at a learning rate of 0.1; worked out by hand.
GRADIENTS = [np.array([1.0, -2.0]), np.array([3.0, 0.0])]


def after_two_steps(optimizer):
    theta = np.array([1.0, 1.0])
    for gradient in GRADIENTS:
        optimizer.step(theta, gradient)
    return theta


def test_sgd_by_hand():
    np.testing.assert_allclose(after_two_steps(SGD(0.1)), [1 - 0.1 - 0.3, 1 + 0.2])


def test_momentum_by_hand():
    # moves (-0.1, 0.2), then 0.9·(-0.1, 0.2) + (-0.3, 0) = (-0.39, 0.18)
    np.testing.assert_allclose(after_two_steps(Momentum(0.1, 0.9)), [1 - 0.1 - 0.39, 1 + 0.2 + 0.18])


def test_adam_by_hand():
    # First step: mean/(1-0.9) = g, square/(1-0.999) = g², so the move is the learning rate against the sign.
    # Second: mean = 0.9·0.1·g₁ + 0.1·g₂ = (0.39, -0.18) over 0.19; square = 0.999·0.001·g₁² + 0.001·g₂² over 0.001999.
    mean = np.array([0.39, -0.18]) / 0.19
    square = np.array([0.000999 + 0.009, 0.003996]) / 0.001999
    expected = np.array([0.9, 1.1]) - 0.1 * mean / np.sqrt(square)
    np.testing.assert_allclose(after_two_steps(Adam(0.1)), expected, rtol=1e-7)


def test_proximal_steps_by_hand():
    l1 = np.array([2.0, 0.0])  # a weight and a bias
    np.testing.assert_allclose(after_two_steps(SGD(0.1, l1)), [0.2, 1.2])  # 1-.1-.2=.7; .7-.3-.2=.2
    # first move 0.7-1 = -0.3; then 0.7 - 0.27 - 0.3 - 0.2 → 0 (threshold not passed); the bias as without penalty
    np.testing.assert_allclose(after_two_steps(Momentum(0.1, 0.9, l1)), [0.0, 1.38])
    theta = np.array([1.0, 1.0])
    Adam(0.1, l1).step(theta, GRADIENTS[0])  # step size 0.1/|g|: 1 - 0.1 - 0.1/1·2
    np.testing.assert_allclose(theta, [0.7, 1.1])


def test_shrink_gives_plain_zeros():
    values = np.array([-0.5, 0.5, -2.0, 0.0])
    shrink(values, 1.0)
    np.testing.assert_array_equal(values, [0.0, 0.0, -1.0, 0.0])
    assert not np.signbit(values[[0, 1, 3]]).any()


@pytest.mark.parametrize("solver", ["sgd", "momentum", "adam"])
def test_an_optimiser_hands_over_its_memory(solver, rng):
    gradients = rng.normal(size=(6, 3))
    whole, parts = np.ones(3), np.ones(3)
    once = make_optimizer(solver, 0.1, 0.9, None)
    first = make_optimizer(solver, 0.1, 0.9, None)
    for gradient in gradients[:3]:
        once.step(whole, gradient)
        first.step(parts, gradient)
    second = make_optimizer(solver, 0.1, 0.9, None, first)
    for gradient in gradients[3:]:
        once.step(whole, gradient)
        second.step(parts, gradient)
    np.testing.assert_array_equal(whole, parts)


def test_unknown_optimiser_is_named():
    with pytest.raises(ValueError, match="solver='lbfgs' is unknown"):
        make_optimizer("lbfgs", 0.1, 0.9, None)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_scaler_counts_weights_and_leaves_constant_columns(rng, dtype, monkeypatch):
    values = rng.normal(3.0, 2.0, size=(50, 2)).astype(dtype)
    values[:, 1] = 0.1
    weights = rng.integers(0, 3, size=50).astype(float)
    repeated = np.repeat(values, weights.astype(int), axis=0)
    monkeypatch.setattr("kstonet.scaling.BLOCK_VALUES", 14)  # several blocks
    scaler = Scaler.fit(values, weights / weights.mean())
    np.testing.assert_allclose(scaler.mean, repeated.mean(axis=0, dtype=float), rtol=1e-6)
    np.testing.assert_allclose(scaler.scale, [repeated[:, 0].std(dtype=float), 1.0], rtol=1e-6)
    in_place = values.copy()
    scaler.forward_in_place(in_place)
    np.testing.assert_allclose(in_place, scaler.forward(values), atol=1e-6)
    np.testing.assert_allclose(scaler.backward(scaler.forward(values)), values, atol=1e-6)
