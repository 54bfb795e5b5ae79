"""``"tune"``: values chosen by validation inside the training rows."""

import pickle
from functools import cache

import numpy as np
import pandas as pd
import pytest
from kstonet.estimators.candidates import Candidate
from kstonet.estimators.search import _arena, _trained
from sklearn.base import clone
from sklearn.metrics import mean_squared_error

import kstonet.estimators.base
import kstonet.estimators.kstonet
from kstonet import KStoNetClassifier, KStoNetRegressor, KStoNetRegressorCV
from kstonet.estimators import candidates
from kstonet.gram.kernels import RBF
from kstonet.tuning import parts, relevance
from kstonet.tuning.parts import validation_parts
from kstonet.tuning.recipes import EVIDENCE, KernelRecipe

FAST = {"max_iter": 4, "n_average": 2, "n_imputation_steps": 3, "residuals": None, "random_state": 0}
ALL = dict.fromkeys(candidates.TUNABLE, "tune")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(50, 3))
Y = np.column_stack([np.sin(2 * X[:, 0]) + 0.3 * X[:, 1], X[:, 2] ** 2]) + 0.1 * RNG.normal(size=(50, 2))
y = Y[:, 0]
LABELS = np.array(["low", "middle", "high"])[np.digitize(y, [-0.4, 0.4])]


def regressor(**parameters):
    return KStoNetRegressor(**(FAST | parameters))


@pytest.fixture
def small(monkeypatch):
    """Few values to choose from, on two parts."""
    grids = {"KERNELS": ("rbf", "laplacian"), "GAMMA_MULTIPLES": (0.5, 2.0), "CS": (1.0, 10.0), "SIZES": ((4,), (5, 4))}
    for name, values in (grids | {"NOISES": ("auto", 1e-2)}).items():
        monkeypatch.setattr(candidates, name, values)
    monkeypatch.setattr(parts, "default_repeats", lambda n: 2)
    monkeypatch.setattr(relevance, "MAX_ITER", 5)


@cache
def tuned_once():
    return regressor(**ALL).fit(X, y)


@pytest.fixture
def tuned(small):
    """A model with everything chosen, not to be changed."""
    return tuned_once()


def chosen_kernels(model):
    """Names and gammas in the fitted first layer."""
    return {(type(part.kernel).__name__, round(part.kernel.gamma, 9)) for part in model._expansion.parts}


def test_values_come_from_the_grids_and_are_used(tuned):
    assert tuned.tuned_.keys() == set(candidates.TUNABLE)
    gammas = {round(m / 3, 9) for m in (0.5, 2.0)}  # gamma="scale" of three standardised features
    assert chosen_kernels(tuned) <= {(name, gamma) for name in ("RBF", "Laplacian") for gamma in gammas}
    assert set(np.atleast_1d(tuned.tuned_["C"])) <= {1.0, 10.0}
    assert tuned.tuned_["hidden_layer_sizes"] in ((4,), (5, 4))
    assert len(tuned._uppers[0].layers) == len(tuned.tuned_["hidden_layer_sizes"]) + 1
    assert tuned.tuned_["noise_variance"] in ("auto", 1e-2)
    plain = regressor(**tuned.tuned_).fit(X, y)
    np.testing.assert_array_equal(tuned.predict(X), plain.predict(X))
    assert tuned.get_params() == regressor(**ALL).get_params()


def test_the_table_and_the_reason(tuned):
    table, reason = tuned.tuning_["table"], tuned.tuning_["reason"]
    assert tuned.history_[0]["tuning"] == reason
    assert all(row["score"] == pytest.approx(np.mean(row["scores"])) for row in table)
    screened = [row for row in table if row["iterations"] == 0]
    assert len(screened) == 2 * 2 * 2 * 2
    assert {len(row["scores"]) for row in screened} == {1, 2}  # the worse half was dropped after the first part
    last = [row for row in table if row["iterations"] == 4]
    winner = min(last, key=lambda row: row["score"])
    assert len(last) == 2
    assert f"loss, {winner['score']:.4g} (next " in reason
    assert f"units {tuned.tuned_['hidden_layer_sizes']}, noise {tuned.tuned_['noise_variance']}" in reason
    for C in np.atleast_1d(tuned.tuned_["C"]):
        assert f"C {C:g}" in reason
    for kernel in np.atleast_1d(winner["kernel"]):
        assert kernel in reason
    assert "2 parts of 40 + 10 training rows, 4 iterations" in reason


def test_only_what_is_asked_is_chosen(small):
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


def test_learned_length_scales_keep_their_gamma(small, monkeypatch):
    """gamma="scale" means the features as they are; resolved anew on the scaled ones it would be another number."""
    monkeypatch.setattr(candidates, "LENGTH_SCALES", (EVIDENCE,))
    model = regressor(length_scale="tune").fit(X, y)
    assert model.tuned_.keys() == {"length_scale", "gamma"}
    assert model.kernel_ == RBF(model.tuned_["length_scale"], pytest.approx(1 / 3))


# -- which rows are seen ------------------------------------------------------------------------------------------------------


def test_rows_outside_the_training_rows_are_not_touched(tuned):
    poisoned = np.full((200, 3), np.nan)
    poisoned[:50] = X
    watched = regressor(**ALL).fit(poisoned[:50], y, X_val=1e9 * X, y_val=-1e9 * y)
    assert watched.tuning_ == tuned.tuning_
    assert watched.tuned_ == tuned.tuned_


@pytest.mark.parametrize("kind", [KStoNetRegressor, KStoNetClassifier])
@pytest.mark.filterwarnings("ignore:the network")  # for the poisoned class
def test_rows_of_weight_zero_do_not_matter(small, kind):
    target = y if kind is KStoNetRegressor else LABELS
    weights = RNG.uniform(0.5, 2.0, size=50)
    plain = kind(**FAST, **ALL).fit(X, target, weights)
    everything = np.vstack([1e6 * np.ones((10, 3)), X])
    poison = np.full(10, 1e6) if kind is KStoNetRegressor else np.full(10, "unheard of")
    poisoned = kind(**FAST, **ALL).fit(everything, np.concatenate([poison, target]), np.append(np.zeros(10), weights))
    assert poisoned.tuning_["reason"] == plain.tuning_["reason"]
    np.testing.assert_allclose(*([row["score"] for row in model.tuning_["table"]] for model in (poisoned, plain)), rtol=1e-9)


def test_the_rows_looked_at_are_not_fitted_on():
    candidate = Candidate((KernelRecipe("rbf", "scale", EVIDENCE),), (3.0,), (3,), "auto")
    fit, look = validation_parts(50, seed=0)[0]
    changed_X, changed_y = X.copy(), y.copy()
    changed_X[look], changed_y[look] = 1e6, -1e6
    arenas = [_arena(regressor(), *rows, None, (fit, look), seed=0) for rows in ((X, y), (changed_X, changed_y))]
    losses = [_trained(regressor(), [arena], candidate, 4, 0, None)[0] for arena in arenas]
    one, other = (arena.models[candidate] for arena in arenas)
    np.testing.assert_array_equal(one.predict(X), other.predict(X))
    error = ((one.predict(X[look]) - y[look]) ** 2).mean() / y[fit].var()
    assert losses[0] == pytest.approx(error)
    assert losses[1] > 1e6


def test_weights_of_the_rows_looked_at_count():
    fit, look = np.arange(40), np.arange(40, 50)
    candidate = Candidate((KernelRecipe("rbf"),), (3.0,), (3,), "auto")
    weights = np.ones(50)
    weights[45:] = 1e-12
    arena = _arena(regressor(), X, y, weights, (fit, look), seed=0)
    (loss,) = _trained(regressor(), [arena], candidate, 4, 0, None)
    model = arena.models[candidate]
    assert loss == pytest.approx(((model.predict(X[40:45]) - y[40:45]) ** 2).mean() / y[fit].var())


# -- kinds of input -----------------------------------------------------------------------------------------------------------


def test_classes_and_frames(small):
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = KStoNetClassifier(**FAST, **ALL).fit(frame, pd.Series(LABELS))
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    assert set(model.predict(frame)) <= set(LABELS)
    last = [row["score"] for row in model.tuning_["table"] if row["iterations"] == 4]
    assert 0 < min(last) < np.log(3)  # mean negative log-likelihood
    assert model.score(frame, LABELS) > 0.6


def test_several_targets_and_no_scaling(small):
    model = regressor(**ALL).fit(X, Y)
    assert model.predict(X).shape == Y.shape
    unscaled = regressor(**ALL, standardize=False).fit(2 * X, 5 * y)
    gammas = {round(m / (3 * (2 * X).var()), 9) for m in (0.5, 2.0)}
    assert {gamma for _, gamma in chosen_kernels(unscaled)} <= gammas


def test_precomputed_kernel(small):
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    K = np.exp(-0.3 * ((Z[:, None] - Z) ** 2).sum(axis=2))
    given = regressor(kernel="precomputed", C="tune", hidden_layer_sizes="tune").fit(K, y)
    screened = [row for row in given.tuning_["table"] if row["iterations"] == 0]
    assert [row["C"] for row in screened] == [1.0, 10.0]
    assert given.tuned_.keys() == {"C", "hidden_layer_sizes"}
    assert given.predict(K[:5]).shape == (5,)
    weights = np.repeat([0.0, 1.0], [10, 40])
    assert regressor(kernel="precomputed", C="tune").fit(K, y, weights).tuned_["C"] in (1.0, 10.0)


def test_units_with_their_own_kernels(small):
    model = regressor(kernel=["rbf", "laplacian", "rbf"], hidden_layer_sizes=(3,), C="tune").fit(X, y)
    assert model.tuned_["C"] in (1.0, 10.0)
    assert "(rbf, laplacian, rbf)" in model.tuning_["reason"]
    both = regressor(kernel=["rbf", "laplacian"], hidden_layer_sizes=2, gamma="tune", C=[1.0, 2.0], noise_variance=[0.1, 0.05])
    both.fit(X, y)
    assert both.tuned_.keys() == {"gamma"}
    assert {round(row["gamma"], 9) for row in both.tuning_["table"]} == {round(m / 3, 9) for m in (0.5, 2.0)}
    scales = regressor(gamma=np.array([0.1, 0.2]), hidden_layer_sizes=[2], length_scale="tune", C=np.array([1.0, 2.0]))
    assert scales.fit(X, y).tuned_["length_scale"] is None or len(scales.tuned_["length_scale"]) == 3


def test_a_schedule_of_c(small):
    model = regressor(C=lambda i: 5.0 + i, gamma="tune").fit(X, y)
    assert model.tuned_.keys() == {"gamma"}
    assert "C <lambda>" in model.tuning_["reason"]


def test_length_scales_of_the_user(small):
    scales = np.array([1.0, 10.0, 10.0])
    model = regressor(length_scale=scales, gamma="tune", kernel="tune").fit(X, y)
    Z = (X - X.mean(axis=0)) / X.std(axis=0) / scales
    assert {gamma for _, gamma in chosen_kernels(model)} <= {round(m / (3 * Z.var()), 9) for m in (0.5, 2.0)}
    assert {part.kernel.length_scale for part in model._expansion.parts} == {(1.0, 10.0, 10.0)}
    assert model.length_scale is scales
    with pytest.raises(ValueError, match="length_scale must hold 3 positive numbers"):
        regressor(length_scale=[1.0, 2.0], gamma="tune").fit(X, y)


def test_few_rows(small):
    model = regressor(C="tune", gamma="tune").fit(X[:5], y[:5])
    assert "2 parts of 4 + 1 training rows" in model.tuning_["reason"]
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
        ({"C": "tune", "gamma": [0.1, 0.2]}, r"gamma=\(0.1, 0.2\): each must be .* one for each of the 5 first-layer units"),
        ({"hidden_layer_sizes": "tune", "C": [1.0, 2.0]}, r"hidden_layer_sizes='tune' tries .*C=\[1.0, 2.0\] must be one"),
    ],
)
def test_bad_arguments_are_named(small, arguments, message):
    model = regressor(**arguments)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)
    assert model.get_params() == regressor(**arguments).get_params()


# -- manners ------------------------------------------------------------------------------------------------------------------


def test_the_seed_decides_and_the_number_of_jobs_changes_nothing(tuned):
    two = regressor(**ALL, n_jobs=2).fit(X, y)
    assert two.tuning_ == tuned.tuning_
    assert two.tuned_ == tuned.tuned_
    other = regressor(**(ALL | {"random_state": 1})).fit(X, y)
    assert other.tuning_ != tuned.tuning_


def test_copies_and_later_fits(small):
    model = regressor(C="tune", gamma="tune").fit(X, y)
    assert clone(model).get_params() == model.get_params()
    assert not hasattr(clone(model), "tuned_")
    assert pickle.loads(pickle.dumps(model)).tuning_ == model.tuning_
    model.set_params(C=1.0, gamma="scale").fit(X, y)
    assert not hasattr(model, "tuned_")
    assert not hasattr(model, "tuning_")
    assert "tuning" not in model.history_[0]


def test_a_warm_start_keeps_the_choice(small, monkeypatch):
    searches = []

    def counted(*args, **kwargs):
        searches.append(1)
        return search(*args, **kwargs)

    search = kstonet.estimators.kstonet.search
    monkeypatch.setattr(kstonet.estimators.kstonet, "search", counted)
    model = regressor(C="tune", gamma="tune", warm_start=True).fit(X, y)
    chosen, reason = model.tuned_, model.tuning_["reason"]
    model.fit(X, y)
    assert (len(searches), model.n_iter_, model.tuned_) == (1, 8, chosen)
    assert model.history_[0]["tuning"] == reason
    model.set_params(noise_variance="tune").fit(X, y)  # asks for more than was chosen
    assert len(searches) == 2
    model.fit(X[:40], y[:40])  # other rows: nothing to go on from
    assert (len(searches), model.n_iter_) == (3, 4)


class Recorder:
    """A callback that cannot be copied: it holds a generator."""

    def __init__(self, at):
        self.at, self.seen, self.stream = at, [], (i for i in range(3))

    def __call__(self, state):
        self.seen.append(state.iteration)
        if state.iteration == self.at:
            raise KeyboardInterrupt


def test_callbacks_see_the_last_training_only_and_can_interrupt_it(small):
    model = regressor(C="tune", gamma="tune", callback=Recorder(3)).fit(X, y)
    assert model.callback.seen == [1, 2, 3]
    assert (model.n_iter_, model.C, model.gamma) == (3, "tune", "tune")
    assert model.history_[0]["tuning"]


@pytest.mark.parametrize("failure", [KeyboardInterrupt, FloatingPointError])
@pytest.mark.parametrize("after", [0, 3, 15])
def test_a_search_can_be_interrupted(small, monkeypatch, failure, after):
    left = [after]

    def failing(*args):
        for state in iro(*args):
            if left[0] == 0:
                raise failure
            left[0] -= 1
            yield state

    iro = kstonet.estimators.base.iro
    monkeypatch.setattr(kstonet.estimators.base, "iro", failing)
    model = regressor(**ALL)
    with pytest.raises(failure):
        model.fit(X, y)
    assert model.get_params() == regressor(**ALL).get_params()
    assert not hasattr(model, "tuned_")


def test_progress_goes_to_standard_error(small, capsys):
    model = regressor(**ALL).fit(X, y)
    assert capsys.readouterr() == ("", "")
    texts = []
    for verbose in (1, 2):
        model.set_params(verbose=verbose).fit(X, y)
        said = capsys.readouterr()
        assert said.out == ""
        texts.append([line for line in said.err.splitlines() if line.startswith("[tune]")])
    assert "first layer alone: kernels × values of C 8 × 2, validation parts 2" in texts[0][0]
    assert "best first layer: " in texts[0][1]
    trained = sum(row["iterations"] > 0 for row in model.tuning_["table"])
    assert len(texts[1]) == len(texts[0]) + trained


def test_warnings_are_those_of_the_last_training(small, monkeypatch, recwarn):
    monkeypatch.setattr(candidates, "SIZES", ((4,), (1, 2)))  # the second widens
    model = regressor(hidden_layer_sizes="tune").fit(X, y)
    widens = model.tuned_["hidden_layer_sizes"] == (1, 2)
    assert len(recwarn.list) == widens  # both were trained on every part; one warning comes from the chosen network, if any


# -- what it is worth, and what it costs --------------------------------------------------------------------------------------


def test_irrelevant_features_are_found():
    rng = np.random.default_rng(3)
    A = rng.normal(size=(400, 6))
    b = np.sin(2 * A[:, 0]) + A[:, 1] + 0.1 * rng.normal(size=400)
    model = regressor(length_scale="tune").fit(A[:100], b[:100])
    scales = np.array(model.tuned_["length_scale"])
    assert scales[2:].min() > 2 * scales[:2].max()
    errors = [mean_squared_error(b[100:], m.predict(A[100:])) for m in (model, regressor().fit(A[:100], b[:100]))]
    assert errors[0] < 0.5 * errors[1]


def test_the_cost_is_that_of_twenty_trainings(monkeypatch):
    """With everything to choose, at few rows: most validation parts. An iteration counts by the rows it sees."""
    seen = []

    def counting(inputs, outputs, *args):
        for state in iro(inputs, outputs, *args):
            seen.append(len(outputs))
            yield state

    iro = kstonet.estimators.base.iro
    monkeypatch.setattr(kstonet.estimators.base, "iro", counting)
    for name, values in {"KERNELS": ("rbf", "laplacian"), "GAMMA_MULTIPLES": (0.5, 2.0)}.items():  # cost no iterations
        monkeypatch.setattr(candidates, name, values)
    monkeypatch.setattr(relevance, "MAX_ITER", 3)
    model = regressor(**(ALL | {"max_iter": 5})).fit(X[:40], y[:40])
    search_only = sum(seen) - 5 * 40
    assert 0 < search_only <= 20 * 5 * 40
    assert {row["iterations"] for row in model.tuning_["table"]} == {0, 1, 3, 5}


@pytest.fixture
def many(small, monkeypatch):
    """As if 50 rows were many: parts of 20, and a larger one of 40."""
    monkeypatch.setattr(parts, "MOST_ROWS", 20)
    monkeypatch.setattr(parts, "LAST_ROWS", 40)


def test_the_best_are_tried_on_more_rows(many):
    model = regressor(**ALL).fit(X, y)
    table, reason = model.tuning_["table"], model.tuning_["reason"]
    assert "on 1 part of 32 + 8 training rows, 4 iterations" in reason
    assert {row["rows"] for row in table} == {16, 32}
    last = [row for row in table if row["rows"] == 32]
    gammas = {row["gamma"] for row in last if row["iterations"] == 0}
    assert max(gammas) == pytest.approx(2 * max(row["gamma"] for row in table if row["rows"] == 16 and row["iterations"] == 0))
    trained = [row for row in last if row["iterations"] == 4]
    assert 2 <= len(trained) <= 6
    best = min(trained, key=lambda row: row["score"])
    assert f"{best['score']:.4g}" in reason
    seed = np.random.RandomState(0).randint(np.iinfo(np.int32).max)
    fit, look = parts.larger_part(50, seed)
    plain = regressor(**model.tuned_, random_state=seed).fit(X[fit], y[fit])  # with the length scales learned there
    loss = np.mean(((y[look] - plain.predict(X[look])) / y[fit].std()) ** 2)
    assert loss == pytest.approx(best["score"], rel=1e-3)


def test_a_search_over_c_alone_on_more_rows(many):
    model = regressor(C="tune").fit(X, y)
    assert {row["gamma"] for row in model.tuning_["table"]} == {"scale"}
    assert {row["rows"] for row in model.tuning_["table"]} == {16, 32}
    search = KStoNetRegressorCV(regressor(), gamma=["scale"], C=[1, 10], hidden_layer_sizes=[(4,)], random_state=0).fit(X, y)
    results = search.cv_results_
    assert set(results["rows"]) == {16, 32}
    larger = results["rows"] == 32
    assert np.isfinite(results["split2_test_score"][larger]).all()  # a part of its own, after the two
    assert np.isnan(results["split2_test_score"][~larger]).all()
    assert np.isnan(results["split0_test_score"][larger]).all()
    assert larger[search.best_index_]
    assert search.best_score_ == pytest.approx(-results["mean_test_score"][search.best_index_])
