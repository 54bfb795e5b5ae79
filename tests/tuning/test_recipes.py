import numpy as np
import pytest

from kstonet.gram import make_kernel
from kstonet.gram.kernels import RBF, Laplacian, Matern, UserKernel
from kstonet.tuning.recipes import EVIDENCE, KernelRecipe, Kitchen
from kstonet.tuning.relevance import evidence_length_scales

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 2)) * [1.0, 3.0]
Y = np.sin(X[:, :1])
SCALE = 1 / (2 * X.var())


def user(A, B):
    return A @ B.T


def test_plain_recipes_are_what_the_estimator_is_given():
    kitchen = Kitchen(X, Y, None, seed=0)
    recipe = KernelRecipe("matern32", 0.3, (1.0, 2.0))
    assert kitchen.parameters(recipe) == {"kernel": "matern32", "gamma": 0.3, "length_scale": (1.0, 2.0)}
    assert kitchen.kernels(recipe) == [Matern((1.0, 2.0), 0.3, 1.5)]
    assert kitchen.kernels(KernelRecipe("rbf")) == [make_kernel("rbf", X)]
    weights = np.linspace(1, 2, 40)
    assert Kitchen(X, Y, weights, 0).kernels(KernelRecipe("rbf")) == [make_kernel("rbf", X, sample_weight=weights)]


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
@pytest.mark.parametrize(("gamma", "number"), [("scale", SCALE), ("auto", 0.5), (0.7, 0.7)])
def test_learned_scales_come_with_the_gamma_of_the_plain_features(kernel, gamma, number):
    kitchen = Kitchen(X, Y, None, seed=0)
    made = kitchen.parameters(KernelRecipe(kernel, gamma, EVIDENCE))
    assert made["gamma"] == pytest.approx(number)
    np.testing.assert_allclose(made["length_scale"], evidence_length_scales(X, Y, kernel, SCALE, 0), rtol=1e-9)
    assert kitchen.kernels(KernelRecipe(kernel, gamma, EVIDENCE)) == [make_kernel(kernel, X, **{k: made[k] for k in GIVEN})]


GIVEN = ("gamma", "length_scale")


def test_scales_are_learned_once_per_kernel():
    kitchen = Kitchen(X, Y, None, seed=0)
    learned = {
        kernel: [kitchen.parameters(KernelRecipe(kernel, gamma, EVIDENCE))["length_scale"] for gamma in (0.1, 0.2)]
        for kernel in ("rbf", "laplacian")
    }
    for one, other in learned.values():
        assert one is other  # kept, not learned again
    assert learned["rbf"][0] != learned["laplacian"][0]


def test_units_with_their_own_kernels():
    kitchen = Kitchen(X, Y, None, seed=0)
    assert kitchen.kernels(KernelRecipe("rbf", (0.1, 0.2, 0.1))) == [RBF(None, 0.1), RBF(None, 0.2)]
    assert kitchen.kernels(KernelRecipe(("rbf", "laplacian"), 0.1)) == [RBF(None, 0.1), Laplacian(None, 0.1)]
    assert kitchen.kernels(KernelRecipe(("rbf", "laplacian"), (0.1, 0.2))) == [RBF(None, 0.1), Laplacian(None, 0.2)]
    learned = kitchen.parameters(KernelRecipe("rbf", ("scale", 0.2), EVIDENCE))
    assert learned["gamma"] == pytest.approx((SCALE, 0.2))


@pytest.mark.parametrize(
    ("recipe", "finished", "per_unit", "possible"),
    [
        (KernelRecipe("rbf"), False, False, True),
        (KernelRecipe("rbf", 0.1, EVIDENCE), False, False, True),
        (KernelRecipe("linear"), True, False, True),
        (KernelRecipe("precomputed"), True, False, True),
        (KernelRecipe("linear", "scale", EVIDENCE), True, False, False),
        (KernelRecipe(RBF(None, 0.3)), True, False, True),
        (KernelRecipe(user, "scale", EVIDENCE), True, False, False),
        (KernelRecipe("rbf", "scale", (1.0, 2.0)), False, False, True),
        (KernelRecipe(("rbf", "linear")), False, True, True),
        (KernelRecipe("rbf", (0.1, 0.2)), False, True, True),
    ],
)
def test_what_a_recipe_says_of_itself(recipe, finished, per_unit, possible):
    assert (recipe.finished, recipe.per_unit, recipe.possible) == (finished, per_unit, possible)
    described = recipe.describe()
    assert described == {"kernel": recipe.kernel, "gamma": described["gamma"], "length_scale": recipe.length_scale}
    assert described["gamma"] == (None if finished else recipe.gamma)


def test_kernels_of_the_user():
    kitchen = Kitchen(X, Y, None, seed=0)
    assert kitchen.kernels(KernelRecipe(user)) == [UserKernel(None, function=user)]
    assert kitchen.kernels(KernelRecipe(RBF(None, 0.3))) == [RBF(None, 0.3)]
    with pytest.raises(ValueError, match="kernel='rfb' is unknown"):
        kitchen.kernels(KernelRecipe("rfb"))
