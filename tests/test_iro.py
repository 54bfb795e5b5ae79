"""Algorithm 1 against a slow, obvious implementation, and the promises of the loop."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso
from sklearn.svm import SVR

from kstonet.gram import DenseGram, make_kernel
from kstonet.imputation.chain import ChainSettings
from kstonet.initialisation import initial_latents
from kstonet.iro import CHUNK, IROSettings, IROState, impute, iro, iro_together, scheduled
from kstonet.layers.activations import get_activation
from kstonet.layers.dense import DenseLayer
from kstonet.layers.kernel import KernelLayer, UnitGroup
from kstonet.network import Network, forward_above
from kstonet.noise import automatic_noise, output_slopes

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
    np.testing.assert_allclose(new.latents[0], Y, atol=1e-9)
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
        up, down = (forward_above(state.network.uppers, values[0] + sign * shift)[-1] for sign in (1.0, -1.0))
        numeric.append(np.abs(up - down)[:, 0] / 2e-6)
    np.testing.assert_allclose(slopes, np.max(numeric, axis=0), rtol=1e-4, atol=1e-7)


def smallest_residual_that_moves(network, values):
    """Residual of every row beyond which the sampler pulls some latent value out of its tube, by bisection of the score."""
    first = network.first
    low, high = np.zeros(N), np.full(N, 1e6)
    for _ in range(80):
        middle = 0.5 * (low + high)
        moves = np.zeros(N, dtype=bool)
        for unit in range(first.n_outputs):
            for side in (-1.0, 1.0):
                latents = values[0].copy()
                latents[:, unit] += side * 1.0001 * first.epsilon[unit]  # just outside
                targets = forward_above(network.uppers, latents)[-1]
                for sign in (-1.0, 1.0):
                    score = network.conditionals(None, targets + sign * middle[:, None]).score(0, (latents,))
                    moves |= side * score[:, unit] > 0
        low, high = np.where(moves, low, middle), np.where(moves, middle, high)
    return high


def test_the_dead_zone_is_a_tenth_of_the_residual_whatever_c():
    """Residuals that cannot pull a latent value out of the tube stay unseen: their size must not grow with C."""
    _, y, state = start()
    state = IROState(0, state.network.with_layer(0, epsilon=np.full(UNITS, 1e-6)), state.latents, state.rng_state)
    values = state.network.forward()
    zones = []
    for C in (1.0, 10.0, 1000.0):
        network = state.network.with_layer(0, C=np.full(UNITS, C))
        network = network.with_noise([automatic_noise(network, values, y)])
        moving = smallest_residual_that_moves(network, values)
        typical = np.mean(moving**-2.0) ** -0.5  # rows with a steep output count most
        zones.append(typical / np.std(y - values[-1]))
    np.testing.assert_allclose(zones, 0.1, rtol=0.02)  # the mean residual is nearly zero
    np.testing.assert_allclose(zones, zones[0], rtol=1e-6)


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
def test_chunks_give_the_same_numbers_for_any_number_of_jobs(sampler):
    """Three chunks of observations; a first layer whose fitted values are given needs no kernel matrix."""
    n, rng = 2 * CHUNK + 100, np.random.default_rng(0)
    first = KernelLayer((), np.array([2.0, 3.0]), np.array([0.1, 0.0]), fitted=rng.normal(size=(n, 2)))
    head = DenseLayer(np.array([[1.0, -2.0]]), np.zeros(1), 0.1, get_activation("tanh"))
    network, y = Network((first, head)), rng.normal(size=(n, 1))
    ends = []
    for n_jobs in (1, 2, 3):
        settings = IROSettings(ChainSettings(sampler, n_steps=3), n_jobs=n_jobs)
        ends.append(impute(np.random.default_rng(1), network, None, y, (first.fitted,), settings, "auto"))
    for latents, draws in ends:
        np.testing.assert_array_equal(latents[0], ends[0][0][0])
        assert len(draws) == 3
        assert all(0 < draw.acceptance <= 1 for draw in draws)
    parts = ends[0][0][0] - first.fitted
    assert not np.allclose(parts[:100], parts[CHUNK : CHUNK + 100])  # every chunk has noise of its own


@pytest.mark.parametrize("C", [0.5, 1.0, 10.0, 1000.0])
def test_the_automatic_temperature_keeps_the_first_layers_noise_small(C):
    """At the temperature T the noise of a unit has the density f^(1/T): at most a share of 0.1·√2 of unit latents."""
    _, y, state = start(C=C, tol=1e-3)
    T = next(iro(None, y, state, IROSettings())).record.temperature
    alone = KernelLayer((), np.array([C]), np.zeros(1), fitted=np.zeros((1, 1)))

    def density(x):
        return float(np.exp(alone.log_density(None, np.array([[x]])) / T)[0])

    reach = 40 * T / C
    mass, second = (quad(lambda x, p=p: x**p * density(x), -reach, reach, points=[0.0])[0] for p in (0, 2))
    deviation = np.sqrt(second / mass)
    assert deviation < 0.1 * np.sqrt(2) + 1e-6
    assert pytest.approx(1.0) == T or deviation == pytest.approx(0.1 * np.sqrt(2))  # no cooler than that asks for
    assert next(iro(None, y, state, IROSettings(temperature=0.5))).record.temperature == 0.5


def test_chains_that_run_together_are_those_that_run_alone():
    """Three chains with weights of their own, refitted in one solve: the draws are the same, the refits agree to their gap."""
    rng = np.random.default_rng(1)
    _, y, state = start(sizes=(3, 2), tol=1e-9)
    other = start(sizes=(3, 2), tol=1e-9, seed=0, C=2.0)[2]
    later = next(iro(None, y, other, IROSettings(ChainSettings(n_steps=3))))
    hidden = np.where(rng.uniform(size=N) < 0.2, 0.0, 1.0)
    states, weights = [state, later, state], [None, rng.uniform(0.5, 2.0, size=N), hidden]
    settings = IROSettings(ChainSettings(n_steps=5), step_size=1e-3, noise_variance=0.05, alpha=1e-3)
    together = iro_together(None, y, states, settings, weights)
    alone = [iro(None, y, state, settings, w) for state, w in zip(states, weights, strict=True)]
    for iteration in range(2):
        for one, chain in zip(next(together), alone, strict=True):
            expected = next(chain)
            assert one.iteration == expected.iteration
            assert one.rng_state == expected.rng_state
            for a, b in zip(one.latents, expected.latents, strict=True):
                np.testing.assert_allclose(a, b, atol=1e-12 if iteration == 0 else 1e-4)
            np.testing.assert_allclose(one.network.forward()[-1], expected.network.forward()[-1], atol=1e-4)
            assert one.record.loss == pytest.approx(expected.record.loss, rel=1e-4)


def test_one_chain_of_several_is_exactly_the_loop_of_one():
    _, y, state = start(tol=1e-6)
    settings = IROSettings(ChainSettings(n_steps=5))
    (one,) = next(iro_together(None, y, [state], settings, [None]))
    np.testing.assert_array_equal(one.network.forward()[-1], next(iro(None, y, state, settings)).network.forward()[-1])
