import numpy as np
import pytest

from kstonet.gram.kernels import RBF, Laplacian
from kstonet.problem import Problem, Rows
from kstonet.settings import KernelLayerSettings, TrainingSettings
from kstonet.targets import NumericTargets
from kstonet.training import train
from kstonet.tuning.candidates import TUNABLE, Candidate, Grids, default_grids
from kstonet.tuning.recipes import EVIDENCE, KernelRecipe, Kitchen

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
X = (X - X.mean(axis=0)) / X.std(axis=0)
y = np.sin(2 * X[:, 0])


def given(**parameters):
    """The parameters of an estimator, as its search is given them."""
    plain = {"kernel": "rbf", "gamma": "scale", "length_scale": None, "C": 10.0, "hidden_layer_sizes": (5,)}
    return plain | {"noise_variance": "auto", "epsilon": 0.01} | parameters


def test_default_grids():
    grids = default_grids(given(**dict.fromkeys(TUNABLE, "tune")), X, None)
    assert grids.kernel == ("rbf", "matern32", "laplacian")
    np.testing.assert_allclose(grids.gamma, np.array([0.25, 0.5, 1.0, 2.0, 4.0]) / 3)
    assert len(grids.recipes) == 30
    assert all(a < b for a, b in zip(grids.C, grids.C[1:], strict=False))
    own = Grids(("linear", "rbf"), (0.1, 0.2), (None, EVIDENCE), (1.0,), ((3,),), ("auto",))
    assert [str(Candidate((recipe,), (1.0,))) for recipe in own.recipes] == [
        "linear, C 1",
        "rbf, gamma 0.1, C 1",
        "rbf, gamma 0.1, a length scale per feature, C 1",
        "rbf, gamma 0.2, C 1",
        "rbf, gamma 0.2, a length scale per feature, C 1",
    ]


def test_gamma_is_a_multiple_for_the_features_as_the_kernel_sees_them():
    scaled = given(gamma="tune", length_scale=np.array([10.0, 10.0, 10.0]))
    np.testing.assert_allclose(default_grids(scaled, X, None).gamma[2], 100 / 3)
    weights = np.repeat([1.0, 3.0], 20)
    twice = np.repeat(X, np.repeat([1, 3], 20), axis=0)
    learned = given(gamma="tune", length_scale="tune")
    np.testing.assert_allclose(default_grids(learned, X, weights).gamma, default_grids(learned, twice, None).gamma)


def test_two_kernels_in_one_layer():
    kitchen = Kitchen(X, y[:, None], None, seed=0)
    one, other = KernelRecipe("rbf", 0.1), KernelRecipe("rbf", 0.3)
    made = Candidate((one, other), (1.0, 1.0), (5,), "auto").parameters(kitchen)
    assert made == {
        "kernel": "rbf", "gamma": [0.1, 0.3, 0.1, 0.3, 0.1], "length_scale": None, "C": 1.0,
        "hidden_layer_sizes": (5,), "noise_variance": "auto",
    }  # fmt: skip
    learned = KernelRecipe("laplacian", 0.3, EVIDENCE)
    candidate = Candidate((one, learned), (1.0, 2.0), 3, "auto")
    made = candidate.parameters(kitchen)
    assert made["kernel"] == [RBF(None, 0.1), Laplacian(kitchen.parameters(learned)["length_scale"], 0.3), RBF(None, 0.1)]
    assert (made["gamma"], made["length_scale"], made["C"]) == ("scale", None, [1.0, 2.0, 1.0])
    described = candidate.describe()
    assert described["kernel"] == ["rbf", "laplacian"]
    assert described["length_scale"] == [None, EVIDENCE]
    assert (
        str(candidate) == "rbf, gamma 0.1, C 1 and laplacian, gamma 0.3, a length scale per feature, C 2, units 3, noise auto"
    )
    settings = TrainingSettings(KernelLayerSettings(), max_iter=2, residuals=None).with_parameters(made)
    model = train(Problem.of(Rows(X, y), NumericTargets), settings)
    assert [len(part.units) for part in model.expansion.parts] == [2, 1]


def test_words():
    def schedule(iteration):
        return 5.0

    per_unit = Candidate((KernelRecipe(("rbf", "linear"), (0.1, "scale")),), ((1.0, 2.0),), (2,), schedule)
    assert str(per_unit) == "(rbf, linear), gamma (0.1, scale), C (1, 2), units (2,), noise schedule"
    own = Candidate((KernelRecipe(RBF(None, 0.3), "scale", (1.0, 2.0, 3.0)),), (schedule,))
    assert str(own) == "RBF, a length scale per feature, C schedule"


@pytest.mark.parametrize("C", [np.array([1.0, 2.0]), [1.0, 2.0], (1.0, 2.0)])
def test_values_per_unit_can_be_compared(C):
    grids = default_grids(given(C=C, kernel=["rbf", "linear"], gamma="tune"), X, None)
    assert grids.C == ((1.0, 2.0),)
    assert grids.kernel == (("rbf", "linear"),)
    assert hash(grids)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"length_scale": "tune", "kernel": "linear"}, "length_scale='tune' needs a kernel among rbf.*kernel='linear'"),
        ({"hidden_layer_sizes": "tune", "epsilon": [0.1, 0.2]}, r"hidden_layer_sizes='tune' tries .*epsilon=\[0.1, 0.2\]"),
    ],
)
def test_choices_that_exclude_each_other_are_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        default_grids(given(**parameters), X, None)
