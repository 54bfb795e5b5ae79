"""Algorithm 1 against a slow, obvious implementation, and the promises of the loop."""

from itertools import pairwise

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso
from sklearn.svm import SVR

import kstonet.iro
from kstonet.gram import DenseGram, make_kernel
from kstonet.imputation.chain import ChainSettings
from kstonet.initialisation import initial_latents
from kstonet.iro import IROSettings, IROState, impute, iro, scheduled
from kstonet.layers.activations import get_activation
from kstonet.layers.dense import DenseLayer
from kstonet.layers.kernel import KernelLayer, UnitGroup
from kstonet.network import Network
from kstonet.noise import automatic_noise, automatic_temperature, output_slopes

N, UNITS = 40, 2


def start(sizes=(UNITS,), seed=0, C=2.0, tol=1e-8, n=N, alpha=1e-3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = (np.sin(2 * X[:, 0]) + X[:, 1])[:, None]
    activation = get_activation("tanh")
    gram = DenseGram(X, make_kernel("rbf", X, gamma=0.5))
    layers = [KernelLayer((UnitGroup(gram, np.arange(sizes[0])),), np.full(sizes[0], C), np.full(sizes[0], 0.05), tol=tol)]
    widths = (*sizes, 1)
    for below, size in pairwise(widths):
        layers.append(DenseLayer(np.zeros((size, below)), np.zeros(size), 0.1, activation, alpha=alpha))
    latents = initial_latents(rng, X, y, sizes, activation)
    network = Network(tuple(layers)).refit(None, latents, y, None)
    return X, y, IROState(0, network, latents, dict(rng.bit_generator.state))


def slow_iteration(X, y, state, *, steps, step_size, friction, noise):
    """Eqs. (imputationeq), (optsolver1), (optsolver2) written as loops over samples, with scikit-learn's solvers."""
    parent = np.random.default_rng()
    parent.bit_generator.state = state.rng_state
    rng = np.random.default_rng([int(parent.integers(2**63)), 0])  # the stream of the first chunk
    first, head = state.network.layers
    w, b = head.weights[0], head.intercept[0]
    f = first.mean()
    Y, v = f.copy(), np.zeros_like(f)
    for _ in range(steps):
        z = rng.standard_normal(Y.shape)
        for s in range(len(Y)):
            error = y[s, 0] - b - sum(w[j] * np.tanh(Y[s, j]) for j in range(UNITS))
            for j in range(UNITS):
                residual = Y[s, j] - f[s, j]
                gradient = -first.C[j] * np.sign(residual) if abs(residual) > first.epsilon[j] else 0.0
                # the error uses the position before this sweep's move of any unit of this layer
                gradient += error * w[j] * (1 - np.tanh(Y[s, j]) ** 2) / noise
                v[s, j] = (1 - friction) * v[s, j] + step_size * gradient + np.sqrt(2 * friction * step_size) * z[s, j]
            Y[s] = Y[s] + v[s]
    svrs = [SVR(gamma=0.5, C=first.C[j], epsilon=first.epsilon[j], tol=1e-8).fit(X, Y[:, j]) for j in range(UNITS)]
    lasso = Lasso(alpha=head.alpha, tol=1e-12, max_iter=100_000).fit(np.tanh(Y), y[:, 0])
    return Y, np.column_stack([svr.predict(X) for svr in svrs]), lasso.coef_, lasso.intercept_


def test_one_iteration_equals_the_slow_reference():
    X, y, state = start()
    settings = IROSettings(ChainSettings(n_steps=7), temperature=1.0, step_size=1e-3, noise_variance=0.05, alpha=1e-3)
    new = next(iro(None, y, state, settings))
    Y, fitted, weights, intercept = slow_iteration(X, y, state, steps=7, step_size=1e-3, friction=0.1, noise=0.05)
    np.testing.assert_allclose(new.latents[0], Y, atol=1e-10)
    np.testing.assert_allclose(new.network.layers[0].mean(), fitted, atol=1e-3)
    np.testing.assert_allclose(new.network.layers[1].weights[0], weights, atol=1e-6)
    assert new.network.layers[1].intercept[0] == pytest.approx(intercept, abs=1e-6)
    assert new.record.iteration == 1


def test_every_layer_may_have_its_own_noise():
    _, y, state = start(sizes=(3, 2), tol=1e-6)

    def after(noise, iterations=1):
        loop = iro(None, y, state, IROSettings(ChainSettings(n_steps=5), noise_variance=noise))
        return [next(loop) for _ in range(iterations)][-1]

    own = after([(0.001, 0.01)])
    assert [layer.variance for layer in own.network.layers[1:]] == [0.001, 0.01]
    assert own.record.noise == 0.01
    np.testing.assert_array_equal(after(lambda t: [0.02, 0.02]).latents[0], after(0.02).latents[0])
    moved = [np.abs(after(noise).latents[0] - after([(0.001, 0.01)]).latents[0]).max() for noise in (0.001, 0.01)]
    assert min(moved) > 1e-4
    assert after([(0.1, 0.1), (0.3, 0.4)], iterations=3).record.noise == 0.4  # the last of a schedule is kept


def test_states_can_be_resumed():
    _, y, state = start(sizes=(3, 2), tol=1e-6)
    settings = IROSettings(ChainSettings(n_steps=5))
    loop = iro(None, y, state, settings)
    states = [next(loop) for _ in range(4)]
    resumed = iro(None, y, states[1], settings)
    again = [next(resumed) for _ in range(2)]
    np.testing.assert_array_equal(again[-1].latents[0], states[-1].latents[0])
    assert again[-1].record.loss == states[-1].record.loss


def test_output_slopes_by_finite_differences():
    _, _, state = start(sizes=(3, 2))
    values = state.network.forward()
    slopes = output_slopes(state.network, values)
    numeric = []
    for j in range(3):
        shift = np.zeros_like(values[0])
        shift[:, j] = 1e-6
        up, down = state.network.forward_from(values[0] + shift)[-1], state.network.forward_from(values[0] - shift)[-1]
        numeric.append(np.abs(up - down)[:, 0] / 2e-6)
    np.testing.assert_allclose(slopes, np.max(numeric, axis=0), rtol=1e-4, atol=1e-7)


def test_the_dead_zone_is_a_fixed_fraction_of_the_residual():
    """C·σ²/slope, the residual below which nothing moves, must not grow with C."""
    zones = []
    for C in (1.0, 10.0, 1000.0):
        _, y, state = start(C=C)
        values = state.network.forward()
        residual = np.sqrt(((y - values[-1]) ** 2).mean())
        slope = np.sqrt((output_slopes(state.network, values) ** 2).mean())
        zones.append(C * automatic_noise(state.network, values, y) / slope / residual)
    np.testing.assert_allclose(zones, 0.1, rtol=1e-6)


def test_a_diverging_step_is_shrunk_and_redone():
    _, y, state = start()
    network = state.network.with_layer(1, variance=1e-4, weights=np.full((1, UNITS), 5.0))
    values = network.forward()
    rng = np.random.default_rng(0)
    settings = IROSettings(ChainSettings(n_steps=400))
    network = network.with_layer(1, activation=get_activation("identity"))
    latents, (draw,) = impute(rng, network, None, y, values[:-1], settings, 1e-3)
    assert draw.n_shrinks >= 1
    assert draw.step_size < 1e-3
    assert np.isfinite(latents[0]).all()
    with pytest.warns(ConvergenceWarning, match="diverged"):
        kept, _ = impute(rng, network, None, y, values[:-1], settings, 1e6)
    np.testing.assert_array_equal(kept[0], values[0])


def test_as_the_noise_shrinks_the_loss_approaches_the_noise_free_networks():
    """Assumption 2-(v), Theorem 2: the two losses differ by less and less, here seen in the output layer's squared error."""
    _, y, state = start(C=5.0)
    gaps = []
    for shrink in (1.0, 10.0, 100.0):
        first = state.network.layers[0]
        network = state.network.with_layer(0, C=first.C * shrink, epsilon=first.epsilon / shrink)
        rng = np.random.default_rng(0)
        f = first.mean()
        # a draw of the latent values from the model itself: f + SVR noise, whose scale is 1/C
        draws = f + rng.laplace(scale=1.0 / network.layers[0].C, size=(200, *f.shape))
        noisy = np.mean([((y - network.layers[1].mean(d)) ** 2).mean() for d in draws])
        exact = ((y - network.layers[1].mean(f)) ** 2).mean()
        gaps.append(abs(noisy - exact))
    assert gaps[0] > 5 * gaps[1] > 25 * gaps[2]


def test_schedules():
    assert scheduled("auto", 3) == "auto"
    assert scheduled(0.5, 9) == 0.5
    assert [scheduled([3.0, 2.0, 1.0], t) for t in (0, 1, 2, 7)] == [3.0, 2.0, 1.0, 1.0]
    assert scheduled(lambda t: 1.0 / (t + 1), 3) == 0.25


@pytest.mark.parametrize("sampler", ["sghmc", "mala", "hmc", "gibbs"])
def test_chunks_give_the_same_numbers_for_any_number_of_jobs(monkeypatch, sampler):
    monkeypatch.setattr(kstonet.iro, "CHUNK", 16)
    ends = []
    for n_jobs in (1, 2, 3):
        _, y, state = start(sizes=(3, 2), tol=1e-3)
        loop = iro(None, y, state, IROSettings(ChainSettings(sampler, n_steps=4), n_jobs=n_jobs))
        ends.append([next(loop) for _ in range(2)][-1])
    for other in ends[1:]:
        for a, b in zip(ends[0].latents, other.latents, strict=True):
            np.testing.assert_array_equal(a, b)
    assert 0 < ends[0].record.acceptance <= 1


def test_the_automatic_temperature_keeps_the_first_layers_noise_small():
    """The noise of an SVR unit at temperature T, exp(-C|x|/T), has standard deviation √2·T/C: at most 0.14 of unit latents."""
    for C, expected in ((0.5, 0.05), (1.0, 0.1), (10.0, 1.0), (1000.0, 1.0)):
        _, y, state = start(C=C, tol=1e-3)
        assert automatic_temperature(state.network) == pytest.approx(expected)
        assert next(iro(None, y, state, IROSettings())).record.temperature == pytest.approx(expected)
        assert next(iro(None, y, state, IROSettings(temperature=0.5))).record.temperature == 0.5
