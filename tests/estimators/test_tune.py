"""``"tune"``: an estimator chooses its parameters by validation inside the training rows, with the default grids."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.metrics import mean_squared_error

from kstonet import KStoNetClassifier, KStoNetRegressor
from kstonet.tuning.candidates import CS, GAMMA_MULTIPLES, KERNELS, NOISES, SIZES, TUNABLE

FAST = {"max_iter": 4, "n_average": 2, "n_imputation_steps": 3, "residuals": None, "random_state": 0}
ALL = dict.fromkeys(TUNABLE, "tune")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(50, 3))
Y = np.column_stack([np.sin(2 * X[:, 0]) + 0.3 * X[:, 1], X[:, 2] ** 2]) + 0.1 * RNG.normal(size=(50, 2))
y = Y[:, 0]
LABELS = np.array(["low", "middle", "high"])[np.digitize(y, [-0.4, 0.4])]
SMALL = {
    "kstonet.tuning.parts.default_repeats": lambda n: 2,
    "kstonet.tuning.candidates.CS": CS[::2],
    "kstonet.tuning.candidates.GAMMA_MULTIPLES": GAMMA_MULTIPLES[::2],
}
CLASSES = {"rbf": "RBF", "matern32": "Matern", "laplacian": "Laplacian"}


def regressor(**parameters):
    return KStoNetRegressor(tuning="none", **(FAST | parameters))


@pytest.fixture(scope="module")
def tuned():
    """A model with everything chosen, not to be changed."""
    return regressor(**ALL).fit(X, y)


@pytest.fixture
def two_parts(monkeypatch):
    """A search averages over two validation parts instead of the five that 50 rows get, and tries every other value."""
    for name, value in SMALL.items():
        monkeypatch.setattr(name, value)


@pytest.fixture(scope="module")
def tuned_on_two_parts():
    """The same by two validation parts, for tests that search once more."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in SMALL.items():
            patch.setattr(name, value)
        return regressor(**ALL).fit(X, y)


def chosen_kernels(model):
    """Names and gammas in the fitted first layer."""
    return {(type(part.kernel).__name__, round(part.kernel.gamma, 9)) for part in model.trained_.expansion.parts}


def gammas(scale, multiples=GAMMA_MULTIPLES):
    return {round(multiple * scale, 9) for multiple in multiples}


def test_values_come_from_the_grids_and_are_used(tuned):
    assert tuned.tuned_.keys() == set(TUNABLE)
    names, used = zip(*chosen_kernels(tuned), strict=True)
    assert set(names) <= {CLASSES[name] for name in KERNELS}
    assert set(used) <= gammas(1 / 3)  # gamma="scale" of three standardised features
    assert set(np.atleast_1d(tuned.tuned_["C"])) <= set(CS)
    assert tuned.tuned_["hidden_layer_sizes"] in SIZES
    assert tuned.trained_.hidden_layer_sizes == tuned.tuned_["hidden_layer_sizes"]
    assert tuned.tuned_["noise_variance"] in NOISES
    plain = regressor(**tuned.tuned_).fit(X, y)
    np.testing.assert_array_equal(tuned.predict(X), plain.predict(X))
    assert tuned.get_params() == regressor(**ALL).get_params()


def test_the_choice_is_told(tuned):
    assert tuned.history_[0]["tuning"] == tuned.tuning_["reason"]
    assert "5 parts of 40 + 10 training rows, 4 iterations" in tuned.tuning_["reason"]
    assert {row["iterations"] for row in tuned.tuning_["table"]} == {0, 1, 2, 4}
    assert (tuned.trained_.chosen, tuned.trained_.choice) == (tuned.tuned_, tuned.tuning_)


def test_only_what_is_asked_is_chosen(two_parts):
    model = regressor(C="tune", hidden_layer_sizes=(4,)).fit(X, y)
    assert model.tuned_.keys() == {"C"}
    assert {row["kernel"] for row in model.tuning_["table"]} == {"rbf"}
    assert {row["gamma"] for row in model.tuning_["table"]} == {"scale"}
    gamma = regressor(gamma="tune", kernel="laplacian", C=3.0).fit(X, y)
    assert gamma.tuned_.keys() == {"gamma"}
    assert {name for name, _ in chosen_kernels(gamma)} == {"Laplacian"}
    assert regressor(noise_variance="tune").fit(X, y).tuned_.keys() == {"noise_variance"}
    no_choice = regressor(kernel="linear", gamma="tune").fit(X, y)  # gamma has no say
    assert (no_choice.tuned_, len(no_choice.tuning_["table"])) == ({"gamma": "scale"}, 1)
    assert "(next" not in no_choice.tuning_["reason"]


# -- which rows are seen -----------------------------------------------------------------------------------------------------


def test_rows_outside_the_training_rows_are_not_touched(tuned_on_two_parts, two_parts):
    poisoned = np.full((200, 3), np.nan)
    poisoned[:50] = X
    watched = regressor(**ALL).fit(poisoned[:50], y, X_val=1e9 * X, y_val=-1e9 * y)
    assert watched.tuning_ == tuned_on_two_parts.tuning_
    assert watched.tuned_ == tuned_on_two_parts.tuned_


@pytest.mark.parametrize("kind", [KStoNetRegressor, KStoNetClassifier])
def test_rows_of_weight_zero_do_not_matter(kind, two_parts):
    target = y if kind is KStoNetRegressor else LABELS
    weights = np.random.default_rng(1).uniform(0.5, 2.0, size=50)
    plain = kind(**FAST, **ALL).fit(X, target, weights)
    everything = np.vstack([1e6 * np.ones((10, 3)), X])
    poison = np.full(10, 1e6) if kind is KStoNetRegressor else np.full(10, "unheard of")
    poisoned = kind(**FAST, **ALL).fit(everything, np.concatenate([poison, target]), np.append(np.zeros(10), weights))
    assert poisoned.tuning_["reason"] == plain.tuning_["reason"]
    np.testing.assert_allclose(*([row["score"] for row in model.tuning_["table"]] for model in (poisoned, plain)), rtol=1e-9)


# -- kinds of input ----------------------------------------------------------------------------------------------------------


def test_classes_and_frames(two_parts):
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = KStoNetClassifier(tuning="none", **FAST, **ALL).fit(frame, pd.Series(LABELS))
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    assert set(model.predict(frame)) <= set(LABELS)
    last = [row["score"] for row in model.tuning_["table"] if row["iterations"] == 4]
    assert 0 < min(last) < np.log(3)  # mean negative log-likelihood
    assert model.score(frame, LABELS) > 0.6


def test_several_targets_and_no_scaling(two_parts):
    model = regressor(**ALL).fit(X, Y)
    assert model.predict(X).shape == Y.shape
    unscaled = regressor(gamma="tune", C="tune", standardize=False).fit(2 * X, 5 * y)
    assert {gamma for _, gamma in chosen_kernels(unscaled)} <= gammas(1 / (3 * (2 * X).var()))


def test_precomputed_kernel(two_parts):
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    K = np.exp(-0.3 * ((Z[:, None] - Z) ** 2).sum(axis=2))
    given = regressor(kernel="precomputed", C="tune", hidden_layer_sizes="tune").fit(K, y)
    screened = [row for row in given.tuning_["table"] if row["iterations"] == 0]
    assert [row["C"] for row in screened] == list(CS[::2])
    assert given.tuned_.keys() == {"C", "hidden_layer_sizes"}
    assert given.predict(K[:5]).shape == (5,)
    weights = np.repeat([0.0, 1.0], [10, 40])
    assert regressor(kernel="precomputed", C="tune").fit(K, y, weights).tuned_["C"] in CS


def test_units_with_their_own_kernels(two_parts):
    model = regressor(kernel=["rbf", "laplacian", "rbf"], hidden_layer_sizes=(3,), C="tune").fit(X, y)
    assert model.tuned_["C"] in CS
    assert "(rbf, laplacian, rbf)" in model.tuning_["reason"]
    both = regressor(kernel=["rbf", "laplacian"], hidden_layer_sizes=2, gamma="tune", C=[1.0, 2.0], noise_variance=[0.1, 0.05])
    both.fit(X, y)
    assert both.tuned_.keys() == {"gamma"}
    assert {round(row["gamma"], 9) for row in both.tuning_["table"]} == gammas(1 / 3, GAMMA_MULTIPLES[::2])
    scales = regressor(gamma=np.array([0.1, 0.2]), hidden_layer_sizes=[2], length_scale="tune", C=np.array([1.0, 2.0]))
    assert scales.fit(X, y).tuned_["length_scale"] is None or len(scales.tuned_["length_scale"]) == 3


def test_a_schedule_of_c(two_parts):
    model = regressor(C=lambda i: 5.0 + i, gamma="tune").fit(X, y)
    assert model.tuned_.keys() == {"gamma"}
    assert "C <lambda>" in model.tuning_["reason"]


def test_length_scales_of_the_user(two_parts):
    scales = np.array([1.0, 10.0, 10.0])
    model = regressor(length_scale=scales, gamma="tune", kernel="tune").fit(X, y)
    Z = (X - X.mean(axis=0)) / X.std(axis=0) / scales
    assert {gamma for _, gamma in chosen_kernels(model)} <= gammas(1 / (3 * Z.var()))
    assert {part.kernel.length_scale for part in model.trained_.expansion.parts} == {(1.0, 10.0, 10.0)}
    assert model.length_scale is scales
    with pytest.raises(ValueError, match="length_scale must hold 3 positive numbers"):
        regressor(length_scale=[1.0, 2.0], gamma="tune").fit(X, y)


def test_few_rows():
    model = regressor(C="tune", gamma="tune").fit(X[:5], y[:5])
    assert "5 parts of 4 + 1 training rows" in model.tuning_["reason"]
    labels = np.repeat(["a", "b", "c"], 4)
    assert set(KStoNetClassifier(**FAST, C="tune").fit(X[:12], labels).predict(X)) <= {"a", "b", "c"}
    alone = np.array(["a", "b"] * 5 + ["c"])
    assert list(KStoNetClassifier(**FAST, C="tune").fit(X[:11], alone).classes_) == ["a", "b", "c"]
    for rows, weights in ((4, None), (20, np.repeat([1.0, 0.0], [4, 16]))):
        with pytest.raises(ValueError, match=r"n_samples=4.*takes 5 rows of positive weight.*Give the parameters values"):
            regressor(C="tune").fit(X[:rows], y[:rows], weights)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"length_scale": "tune", "kernel": "linear"}, "length_scale='tune' needs a kernel among rbf.*kernel='linear'"),
        ({"length_scale": "tune", "kernel": ["rbf"] * 5}, "length_scale='tune' needs a kernel among"),
        ({"C": "auto"}, "C='auto' is unknown; give numbers, or 'tune'"),
        ({"C": "auto", "gamma": "tune"}, "C='auto' is unknown"),
        ({"length_scale": "scale"}, "length_scale='scale' is unknown"),
        ({"hidden_layer_sizes": "auto"}, "hidden_layer_sizes='auto' is unknown"),
        ({"gamma": "tuned"}, "gamma='tuned' is unknown"),
        ({"kernel": "tuned", "C": "tune"}, "kernel='tuned' is unknown"),
        ({"noise_variance": "tuned"}, "noise_variance='tuned' must be"),
        ({"C": "tune", "max_iter": 0}, "max_iter=0"),
        (
            {"hidden_layer_sizes": (5,), "C": "tune", "gamma": [0.1, 0.2]},
            r"gamma=\(0.1, 0.2\): each must be .* one for each of the 5 first-layer units",
        ),
        ({"hidden_layer_sizes": "tune", "C": [1.0, 2.0]}, r"hidden_layer_sizes='tune' tries .*C=\[1.0, 2.0\] must be one"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    model = regressor(**arguments)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)
    assert model.get_params() == regressor(**arguments).get_params()


# -- conventions -------------------------------------------------------------------------------------------------------------


def test_the_seed_decides_and_the_number_of_jobs_changes_nothing(tuned_on_two_parts, two_parts):
    two = regressor(**ALL, n_jobs=2).fit(X, y)
    assert two.tuning_ == tuned_on_two_parts.tuning_
    assert two.tuned_ == tuned_on_two_parts.tuned_
    one, other = (regressor(C="tune", gamma="tune", random_state=seed).fit(X, y) for seed in (0, 1))
    assert one.tuning_ != other.tuning_


def test_copies_and_later_fits(two_parts):
    model = regressor(C="tune", gamma="tune").fit(X, y)
    assert clone(model).get_params() == model.get_params()
    assert not hasattr(clone(model), "tuned_")
    assert pickle.loads(pickle.dumps(model)).tuning_ == model.tuning_
    model.set_params(C=1.0, gamma="scale").fit(X, y)
    assert not hasattr(model, "tuned_")
    assert not hasattr(model, "tuning_")
    assert "tuning" not in model.history_[0]


def test_a_warm_start_keeps_the_choice(capsys, two_parts):
    def searched():
        return "[tune]" in capsys.readouterr().err

    model = regressor(C="tune", gamma="tune", warm_start=True, verbose=1).fit(X, y)
    chosen, reason = model.tuned_, model.tuning_["reason"]
    assert searched()
    model.fit(X, y)
    assert not searched()
    assert (model.n_iter_, model.tuned_) == (8, chosen)
    assert model.history_[0]["tuning"] == reason
    model.set_params(noise_variance="tune").fit(X, y)  # asks for more than was chosen
    assert searched()
    model.fit(X[:40], y[:40])  # other rows: nothing to go on from
    assert searched()
    assert model.n_iter_ == 4


class Recorder:
    """A callback that cannot be copied: it holds a generator."""

    def __init__(self, at):
        self.at, self.seen, self.stream = at, [], (i for i in range(3))

    def __call__(self, state):
        self.seen.append(state.iteration)
        if state.iteration == self.at:
            raise KeyboardInterrupt


def test_callbacks_see_the_last_training_only_and_can_interrupt_it(two_parts):
    model = regressor(C="tune", gamma="tune", callback=Recorder(3)).fit(X, y)
    assert model.callback.seen == [1, 2, 3]
    assert (model.n_iter_, model.C, model.gamma) == (3, "tune", "tune")
    assert model.history_[0]["tuning"]


class Failing:
    """A penalty schedule that fails after some calls, in the middle of a search."""

    def __init__(self, after, failure):
        self.left, self.failure = after, failure

    def __call__(self, iteration):
        if self.left == 0:
            raise self.failure
        self.left -= 1
        return 1e-3


@pytest.mark.parametrize("failure", [KeyboardInterrupt, FloatingPointError])
@pytest.mark.parametrize("after", [3, 8, 40])
def test_a_search_can_be_interrupted(failure, after, two_parts):
    schedule = Failing(after, failure)
    model = regressor(**ALL, alpha=schedule)
    with pytest.raises(KeyboardInterrupt if failure is KeyboardInterrupt else ValueError):  # which names a remedy
        model.fit(X, y)
    assert schedule.left == 0
    assert model.get_params() == regressor(**ALL, alpha=schedule).get_params()
    assert not hasattr(model, "tuned_")


def test_progress_goes_to_standard_error(capsys, two_parts):
    regressor(C="tune").fit(X, y)
    assert capsys.readouterr() == ("", "")
    regressor(C="tune", verbose=1).fit(X, y)
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("[KStoNetRegressor] choosing C from the training rows\n[tune]")


def test_warnings_are_those_of_the_last_training(recwarn, two_parts):
    regressor(hidden_layer_sizes=(2, 3), C="tune").fit(X, y)
    assert ["is not pyramidal" in str(warning.message) for warning in recwarn.list] == [True]  # one for many trainings


# -- what it is worth --------------------------------------------------------------------------------------------------------


def test_irrelevant_features_are_found():
    rng = np.random.default_rng(3)
    A = rng.normal(size=(400, 6))
    b = np.sin(2 * A[:, 0]) + A[:, 1] + 0.1 * rng.normal(size=400)
    model = regressor(length_scale="tune").fit(A[:100], b[:100])
    assert model.tuned_.keys() == {"length_scale", "gamma"}  # a gamma that goes with the learned scales
    scales = np.array(model.tuned_["length_scale"])
    assert scales[2:].min() > 2 * scales[:2].max()
    errors = [mean_squared_error(b[100:], m.predict(A[100:])) for m in (model, regressor().fit(A[:100], b[:100]))]
    assert errors[0] < 0.5 * errors[1]
