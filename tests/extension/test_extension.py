"""A kernel, a Gram, a layer and a sampler from outside the package, through everything that users do with a model."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize

import kstonet
from extension import cauchy_kernel, direct_gram, huber_layer, walk_sampler
from kstonet import KStoNetClassifier, KStoNetRegressor, MultiTargetSVR, StoNetRegressor
from kstonet.gram import DenseGram, Gram, make_gram, make_kernel, register_gram, register_kernel
from kstonet.imputation import MALA, register_sampler
from kstonet.layers import UpperLayer, register_layer
from kstonet.layers.activations import get_activation
from kstonet.layers.dense import DenseLayer
from kstonet.persistence import ModelFileError, storable

TESTS = Path(__file__).parents[1]
RNG = np.random.default_rng(5)
X = RNG.normal(size=(80, 2))
SIGNAL = np.sin(2.0 * X[:, 0]) + 0.5 * X[:, 1]
y = SIGNAL + 0.1 * RNG.normal(size=80)
NEW = RNG.normal(size=(9, 2))
SHORT = {"max_iter": 6, "n_average": 3, "random_state": 0}

EXTENSIONS = {
    "kernel": ({"kernel": "cauchy"}, cauchy_kernel),
    "Gram": ({"solver": "direct"}, direct_gram),
    "layer": ({"upper_layer": "huber", "hidden_layer_sizes": (5, 3)}, huber_layer),
    "sampler": ({"sampler": "walk"}, walk_sampler),
    "all": ({"kernel": "cauchy", "solver": "direct", "upper_layer": "huber", "sampler": "walk"}, None),
}


@pytest.fixture(scope="module")
def fitted():
    """Every regression, fitted once."""
    made = {}

    def get(name):
        if name not in made:
            made[name] = KStoNetRegressor(tuning="none", **SHORT, **EXTENSIONS[name][0]).fit(X, y)
        return made[name]

    return get


@pytest.mark.parametrize("name", EXTENSIONS)
def test_it_learns_and_its_intervals_cover(name, fitted):
    model = fitted(name)
    assert model.score(X, SIGNAL) > 0.9
    interval = model.predict_interval(X, 0.9)
    assert 0.8 < np.mean((interval[:, 0] <= y) & (y <= interval[:, 1])) < 1.0
    assert np.mean(interval[:, 1] - interval[:, 0]) < 2.0 * np.std(y)


@pytest.mark.parametrize("name", EXTENSIONS)
def test_a_stored_model_answers_with_the_same_bits(name, fitted, tmp_path):
    model = fitted(name)
    kstonet.save(model, tmp_path / "m.kstonet")
    loaded = kstonet.load(tmp_path / "m.kstonet")
    for part, value in EXTENSIONS[name][0].items():
        assert getattr(loaded, part) == value
    np.testing.assert_array_equal(loaded.predict(NEW), model.predict(NEW))
    np.testing.assert_array_equal(loaded.predict_interval(NEW, [0.5, 0.9]), model.predict_interval(NEW, [0.5, 0.9]))
    np.testing.assert_array_equal(loaded.calibrate().predict_interval(NEW), model.calibrate().predict_interval(NEW))
    assert loaded.fit(X, y).score(X, SIGNAL) > 0.9  # and can be trained anew


@pytest.mark.parametrize("name", EXTENSIONS)
def test_a_graph_gives_what_the_model_gives(name, fitted, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    model = fitted(name)
    kstonet.to_onnx(model, tmp_path / "m.onnx")
    mean, std = onnxruntime.InferenceSession(tmp_path / "m.onnx").run(["mean", "std"], {"X": NEW})
    expected = model.predict(NEW, return_std=True)
    np.testing.assert_allclose(mean, expected[0], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(std, expected[1], rtol=1e-6)


def test_training_residuals():
    model = KStoNetRegressor(tuning="none", **SHORT, **EXTENSIONS["all"][0], residuals="training").fit(X, y)
    assert np.isfinite(model.predict_interval(NEW)).all()


def test_classes(few_folds):
    settings = {"kernel": "cauchy", "solver": "direct", "upper_layer": "huber", "sampler": "walk", "hidden_layer_sizes": (5, 3)}
    model = KStoNetClassifier(tuning="none", **SHORT, **settings).fit(X, y > 0)
    assert model.score(X, SIGNAL > 0) > 0.9
    assert np.isfinite(model.predict_proba_interval(NEW)).all()


def test_the_other_estimators(tmp_path, few_folds):
    kernel = MultiTargetSVR(kernel="cauchy").fit(X, y)
    kstonet.save(kernel, tmp_path / "svr.kstonet")
    np.testing.assert_array_equal(kstonet.load(tmp_path / "svr.kstonet").predict(NEW), kernel.predict(NEW))
    layer = StoNetRegressor(**SHORT, kernel="cauchy", upper_layer="huber", sampler="walk").fit(X, y)
    kstonet.save(layer, tmp_path / "m.kstonet")
    np.testing.assert_array_equal(kstonet.load(tmp_path / "m.kstonet").predict_interval(NEW), layer.predict_interval(NEW))


# -- files in other processes -------------------------------------------------------------------------------------------------

LOAD = """
import json, sys
import kstonet
said = {}
for path in sys.argv[1:]:
    try:
        said[path] = kstonet.load(path).predict([[0.5, -0.5]])[0]
    except kstonet.persistence.ModelFileError as error:
        said[path] = str(error)
print(json.dumps(said))
"""


def loaded_elsewhere(fitted, folder, imported=""):
    """What a new process says to the files of the four models: a prediction, or the error."""
    paths = {str(folder / f"{name}.kstonet"): name for name in EXTENSIONS if name != "all"}
    for path, name in paths.items():
        kstonet.save(fitted(name), path)
    done = subprocess.run([sys.executable, "-c", imported + LOAD, *paths], capture_output=True, text=True, check=True)
    return {paths[path]: answer for path, answer in json.loads(done.stdout).items()}


def test_files_load_where_the_extension_is_imported(fitted, tmp_path):
    modules = ", ".join(module.__name__ for _, module in EXTENSIONS.values() if module is not None)
    said = loaded_elsewhere(fitted, tmp_path, f"import sys; sys.path.insert(0, {str(TESTS)!r}); import {modules}\n")
    for name, prediction in said.items():
        assert prediction == pytest.approx(fitted(name).predict([[0.5, -0.5]])[0], rel=1e-12)


def test_elsewhere_the_error_names_the_class_that_is_missing(fitted, tmp_path):
    said = loaded_elsewhere(fitted, tmp_path)
    for name, missing in (("kernel", "Cauchy"), ("layer", "HuberLayer")):
        assert f"it holds a '{missing}', a class that is not known here. Import the module that defines it" in said[name]
    for name in ("Gram", "sampler"):  # only training uses them
        assert said[name] == pytest.approx(fitted(name).predict([[0.5, -0.5]])[0], rel=1e-12)


def test_a_layer_that_is_not_storable_is_refused_when_saved(tmp_path):
    class Unregistered(DenseLayer):
        pass

    register_layer("unregistered", Unregistered.new)
    model = KStoNetRegressor(tuning="none", **SHORT, upper_layer="unregistered").fit(X, y)
    with pytest.raises(TypeError, match=r"trained_ holds .*Unregistered"):
        kstonet.save(model, tmp_path / "m.kstonet")


# -- names --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("register", "argument", "entry"),
    [
        (register_kernel, "kernel='cauchy'", lambda length_scale: None),
        (register_gram, "solver='direct'", DenseGram),
        (register_layer, "upper_layer='huber'", DenseLayer.new),
        (register_sampler, "sampler='walk'", MALA),
    ],
)
def test_a_name_belongs_to_one_definition(register, argument, entry):
    name = argument.split("'")[1]
    with pytest.raises(ValueError, match=f"{argument} is .* already; choose another name"):
        register(name, entry)


def test_a_definition_may_run_again():
    register_kernel("cauchy", cauchy_kernel.Cauchy)
    register_gram("direct", direct_gram.DirectGram)
    register_layer("huber", huber_layer.HuberLayer.new)
    register_sampler("walk", walk_sampler.RandomWalk)


def test_storable_is_for_dataclasses_of_a_free_name():
    with pytest.raises(ValueError, match="is not a dataclass"):
        storable()(type("Plain", (), {}))
    other = type("HuberLayer", (DenseLayer,), {})
    with pytest.raises(ValueError, match=r"'HuberLayer' exists already, in .*huber_layer"):
        storable()(other)


@pytest.mark.parametrize(("parameter", "value"), [("sampler", "jump"), ("upper_layer", "median"), ("solver", "magic")])
def test_unknown_names_are_answered_with_the_known_ones(parameter, value):
    known = {"sampler": "walk", "upper_layer": "huber", "solver": "direct"}[parameter]
    with pytest.raises(ValueError, match=f"{parameter}='{value}' .*one of .*{known}"):
        KStoNetRegressor(tuning="none", **{parameter: value}).fit(X, y)


# -- the extensions themselves ------------------------------------------------------------------------------------------------


def test_the_kernel_is_positive_semidefinite_and_has_its_gradient():
    kernel = make_kernel("cauchy", X, gamma=0.7)
    assert np.linalg.eigvalsh(kernel(X, X)).min() > -1e-10
    coef, h = RNG.normal(size=(2, 80)), 1e-6
    gradient = kernel.gradient(NEW, X, coef)
    for j in range(2):
        step = h * np.eye(2)[j]
        slope = (kernel(NEW + step, X) - kernel(NEW - step, X)) @ coef.T / (2 * h)
        np.testing.assert_allclose(gradient[:, :, j], slope, atol=1e-7)


def test_the_gram_is_a_gram_and_trains_the_same_network(fitted):
    kernel = make_kernel("rbf", X)
    gram = make_gram(X, kernel, solver="direct")
    assert isinstance(gram, Gram)
    rows, dense = RNG.normal(size=(3, 80)), DenseGram(X, kernel)
    for name, arguments in (("product", (rows,)), ("solve_on", (np.arange(80), 0.1, rows)), ("columns", (np.arange(3),))):
        np.testing.assert_allclose(getattr(gram, name)(*arguments), getattr(dense, name)(*arguments), atol=1e-9)
    np.testing.assert_allclose(gram.shifted(0.1).solve(rows), dense.shifted(0.1).solve(rows), atol=1e-9)
    model = KStoNetRegressor(tuning="none", **SHORT).fit(X, y)
    np.testing.assert_allclose(fitted("Gram").predict(NEW), model.predict(NEW), rtol=1e-4, atol=1e-4)
    with pytest.raises(ValueError, match="device='cuda'"):
        make_gram(X, kernel, solver="direct", device="cuda")
    with pytest.raises(kstonet.GramTooLargeError):
        make_gram(X, kernel, solver="direct", max_memory=1e4)


@pytest.fixture
def layer():
    new = huber_layer.HuberLayer.new(2, 1, get_activation("identity"), "ridge", 0.05)
    outputs = (X @ [1.0, -2.0] + 0.2 * RNG.standard_t(1.5, size=80))[:, None]
    return new.with_noise(0.2), outputs


def test_the_layer_finds_the_optimum_of_its_convex_problem(layer):
    new, outputs = layer
    assert isinstance(new, UpperLayer)
    weight = RNG.uniform(0.5, 2.0, size=80)

    def objective(parameters):
        e = outputs[:, 0] - X @ parameters[1:] - parameters[0]
        size = np.abs(e)
        rho = np.where(size <= 0.3, 0.5 * e**2, 0.3 * (size - 0.15))
        return weight @ rho / weight.sum() + 0.025 * (parameters[1:] ** 2).sum()

    best = minimize(objective, np.zeros(3), tol=1e-12)
    fit = new.refit(X, outputs, weight)
    np.testing.assert_allclose([*fit.intercept, *fit.weights[0]], best.x, atol=1e-5)


def test_the_layers_scores_are_the_slopes_of_its_density(layer):
    fit, h = layer[0].refit(X, layer[1]), 1e-6
    for j in range(2):
        step = h * np.eye(2)[j]
        slope = (fit.log_density(X + step, layer[1]) - fit.log_density(X - step, layer[1])) / (2 * h)
        np.testing.assert_allclose(fit.score_input(X, layer[1])[:, j], slope, atol=1e-5)
    slope = (fit.log_density(X, layer[1] + h) - fit.log_density(X, layer[1] - h)) / (2 * h)
    np.testing.assert_allclose(fit.score_output(X, layer[1])[:, 0], slope, atol=1e-5)
    grid = np.linspace(-60.0, 60.0, 200_001)[:, None]
    density = np.exp(fit.log_density(np.zeros((len(grid), 2)), grid))
    assert density.sum() * (grid[1, 0] - grid[0, 0]) == pytest.approx(1.0, abs=1e-5)


def test_the_layer_resists_outliers():
    clean = X @ [[1.0], [-2.0]] + 0.5
    spoilt = clean.copy()
    spoilt[::10] += 15.0
    kinds = (kind.new(2, 1, get_activation("identity"), "none", 0.0) for kind in (huber_layer.HuberLayer, DenseLayer))
    robust, squares = (layer.refit(X, spoilt) for layer in kinds)
    assert np.abs(robust.mean(X) - clean).max() < 0.1 < 1.0 < np.abs(squares.mean(X) - clean).max()


def test_the_sampler_draws_from_its_target():
    class Normal:
        """Y ~ N(3, 2²) for every observation."""

        def log_density(self, layer, latents):
            return -0.125 * ((latents[0] - 3.0) ** 2).sum(axis=1)

    sampler = walk_sampler.RandomWalk((np.full((2000, 1), 4.0),))
    rng, state = np.random.default_rng(0), sampler.init((np.full((2000, 1), 3.0),))
    for _ in range(60):
        state, info = sampler.step(rng, state, Normal())
    assert 0.2 < info.acceptance < 0.9
    assert state.latents[0].mean() == pytest.approx(3.0, abs=0.15)
    assert state.latents[0].std() == pytest.approx(2.0, abs=0.1)


def test_a_search_chooses_the_width_of_the_kernel():
    model = KStoNetRegressor(**SHORT, kernel="cauchy", gamma="tune", residuals=None).fit(X, y)
    assert model.kernel_ == cauchy_kernel.Cauchy(gamma=pytest.approx(model.tuned_["gamma"]))


def test_errors_of_a_file_stay_errors_of_the_file(fitted, tmp_path):
    """A class that is registered, with fields that are wrong."""
    from kstonet.storage import container

    path = tmp_path / "m.kstonet"
    kstonet.save(fitted("layer"), path)
    description, tensors = container.read(path)
    head = description["attributes"]["trained_"]["record"][1]["uppers"]["tuple"][0]["tuple"][-1]["record"]
    assert head[0] == "HuberLayer"
    for field, wrong in {"threshold": "x", "activation": None, "weights": 3.0}.items():
        kept, head[1][field] = head[1][field], wrong
        container.write(path, description, tensors)
        with pytest.raises(ModelFileError, match=f"HuberLayer.{field} is"):
            kstonet.load(path)
        head[1][field] = kept
