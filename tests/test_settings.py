"""Settings become networks; a search replaces some of them."""

import numpy as np
import pytest

from kstonet import KStoNetRegressor
from kstonet.iro import IROSettings
from kstonet.layers.heads import CategoricalHead
from kstonet.problem import Problem, Rows
from kstonet.settings import KernelLayerSettings, LinearLayerSettings, TrainingSettings, layer_sizes, per_unit, units_given
from kstonet.targets import ClassTargets, NumericTargets

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(20, 3)), RNG.normal(size=(20, 2))
PROBLEM = Problem.of(Rows(X, Y), NumericTargets)


def test_a_network_has_the_sizes_asked_for():
    network = TrainingSettings(KernelLayerSettings(), (4, 3), upper_layer="dense").new_network(PROBLEM)
    assert [layer.n_outputs for layer in network.layers] == [4, 3, 2]
    assert [layer.n_inputs for layer in network.uppers] == [4, 3]
    classes = Problem.of(Rows(X, np.arange(20) % 3), ClassTargets)
    assert isinstance(TrainingSettings(LinearLayerSettings()).new_network(classes).head, CategoricalHead)


def test_units_with_the_same_kernel_share_a_gram():
    settings = KernelLayerSettings(gamma=[0.1, 0.2, 0.1], C=[1.0, 2.0, 3.0], epsilon=[0.0, 0.1, 0.2])
    layer = settings.build(PROBLEM, 3)
    assert [group.units.tolist() for group in layer.groups] == [[0, 2], [1]]
    assert layer.groups[0].gram is PROBLEM.grams.of(layer.groups[0].gram.kernel)
    np.testing.assert_array_equal(layer.C, [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(layer.epsilon, [0.0, 0.1, 0.2])
    assert settings.inputs(PROBLEM) is None


def test_a_linear_layer_takes_features_or_kernel_values():
    assert LinearLayerSettings().inputs(PROBLEM) is PROBLEM.X
    settings = LinearLayerSettings(kernel="rbf", gamma=0.3)
    K = np.exp(-0.3 * ((PROBLEM.X[:, None] - PROBLEM.X) ** 2).sum(axis=2))
    np.testing.assert_allclose(settings.inputs(PROBLEM), K, atol=1e-12)
    assert settings.build(PROBLEM, 4).n_inputs == 20


def test_a_schedule_of_c_belongs_to_the_loop():
    settings = TrainingSettings(KernelLayerSettings(C=lambda t: 5.0 + t), iro=IROSettings(temperature=0.5))
    assert settings.loop.C(2) == 7.0
    assert settings.loop.temperature == 0.5
    np.testing.assert_array_equal(settings.first.build(PROBLEM, 2).C, 5.0)
    assert TrainingSettings(KernelLayerSettings(C=5.0)).loop.C is None


def test_a_search_replaces_settings_and_leaves_the_given_ones_alone():
    given = TrainingSettings(KernelLayerSettings(C="tune", gamma=0.3), max_iter=7)
    chosen = given.with_parameters({"C": 3.0, "hidden_layer_sizes": 4, "noise_variance": 0.1, "kernel": "laplacian"})
    assert (chosen.first.C, chosen.first.kernel, chosen.first.gamma) == (3.0, "laplacian", 0.3)
    assert (chosen.hidden_layer_sizes, chosen.iro.noise_variance, chosen.max_iter) == ((4,), 0.1, 7)
    assert (given.first.C, given.hidden_layer_sizes, given.iro.noise_variance) == ("tune", (5,), "auto")
    assert given.with_parameters({}) == given


def test_sizes_and_values_per_unit():
    assert layer_sizes(3) == layer_sizes([3]) == layer_sizes(np.array([3])) == (3,)
    np.testing.assert_array_equal(per_unit("C", 2, 3), [2.0, 2.0, 2.0])
    np.testing.assert_array_equal(per_unit("epsilon", [0.0, 1.0], 2, zero_allowed=True), [0.0, 1.0])
    for bad in (0.0, [1.0, 2.0], np.inf, "large", [1.0, -1.0, 1.0]):
        with pytest.raises(ValueError, match=r"C=.* must be one positive number, or one for each of the 3"):
            per_unit("C", bad, 3)
    with pytest.raises(ValueError, match=r"gamma=\[0.1, 0.2\]: each must be one value"):
        KernelLayerSettings(gamma=[0.1, 0.2]).build(PROBLEM, 3)
    with pytest.raises(ValueError, match="svr_tol=0"):
        KernelLayerSettings(tol=0).build(PROBLEM, 3)


def test_length_scales_per_unit():
    p = PROBLEM.X.shape[1]
    scales = np.array([np.full(p, 0.5), np.full(p, 2.0)])
    kernels = KernelLayerSettings(length_scale=scales, gamma=[0.1, 0.2]).kernels(PROBLEM, 2)
    assert [kernel.length_scale for kernel in kernels] == [(0.5,) * p, (2.0,) * p]
    assert units_given({"length_scale": scales}) == 2
    assert units_given({"length_scale": scales[0]}) is None
    with pytest.raises(ValueError, match=r"(?s)length_scale=.*: each must be one value, or one for each of the 3"):
        KernelLayerSettings(length_scale=scales).build(PROBLEM, 3)


@pytest.mark.parametrize("tuning", ["none", "fast"])
def test_units_with_views_of_their_own(tuning):
    """Two units, each with the other feature hidden, make a sum of two functions."""
    X = np.random.default_rng(0).normal(size=(150, 2))
    options = {"tuning": tuning, "loss": "squared", "residuals": None, "max_iter": 5, "random_state": 0}
    model = KStoNetRegressor(length_scale=[[1.0, 1e6], [1e6, 1.0]], **options).fit(X, np.sin(X[:, 0]) + X[:, 1])
    units = model.feature_importance().units
    assert units.shape == (2, 2)
    assert (np.diag(units) > 0.999).all()
