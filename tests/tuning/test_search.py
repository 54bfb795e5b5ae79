"""The search: a problem, settings and grids in, parameters out; which rows it sees, what it costs, how it ends."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.utils import check_random_state

from kstonet.gram.kernels import RBF
from kstonet.imputation.chain import ChainSettings
from kstonet.iro import IROSettings
from kstonet.layers import UPPER_LAYERS
from kstonet.layers.dense import DenseLayer
from kstonet.problem import Problem, Rows
from kstonet.settings import KernelLayerSettings, TrainingSettings
from kstonet.targets import ClassTargets, NumericTargets
from kstonet.training import train
from kstonet.tuning.candidates import CS, NOISES, SIZES, TUNABLE, Grids
from kstonet.tuning.parts import validation_parts
from kstonet.tuning.recipes import EVIDENCE, Kitchen
from kstonet.tuning.search import search

RNG = np.random.default_rng(0)
X = RNG.normal(size=(50, 3))
y = np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + 0.1 * RNG.normal(size=50)
LABELS = np.array(["low", "middle", "high"])[np.digitize(y, [-0.4, 0.4])]
PROBLEM = Problem.of(Rows(X, y), NumericTargets)
LOOP = IROSettings(ChainSettings(n_steps=3))
SETTINGS = TrainingSettings(KernelLayerSettings(), iro=LOOP, max_iter=4, n_average=2, residuals=None)
GRIDS = Grids(
    kernel=("rbf", "laplacian"),
    gamma=(0.5 / 3, 2 / 3),
    length_scale=(None, EVIDENCE),
    C=(1.0, 10.0),
    hidden_layer_sizes=((4,), (5, 4)),
    noise_variance=("auto", 1e-2),
)
ONE = Grids(("rbf",), ("scale",), (None,), (3.0,), ((3,),), ("auto",))  # no choice


def found(problem=PROBLEM, grids=GRIDS, parts=None, last=None, settings=SETTINGS, **options):
    parts = validation_parts(50, seed=0, repeats=2) if parts is None else parts
    return search(problem, settings, grids, parts, last, **({"seed": 0, "n_jobs": None, "verbose": 0} | options))


@pytest.fixture(scope="module")
def result():
    return found()


# -- what is found -----------------------------------------------------------------------------------------------------------


def test_parameters_are_values_of_the_grids(result):
    assert result.parameters.keys() == set(TUNABLE)
    kernels = SETTINGS.with_parameters(result.parameters).first.kernels(PROBLEM, 4)
    assert {type(kernel).__name__ for kernel in kernels} <= {"RBF", "Laplacian"}
    assert {round(kernel.gamma, 9) for kernel in kernels} <= {round(gamma, 9) for gamma in GRIDS.gamma}
    assert set(np.atleast_1d(result.parameters["C"])) <= set(GRIDS.C)
    assert result.parameters["hidden_layer_sizes"] in GRIDS.hidden_layer_sizes
    assert result.parameters["noise_variance"] in GRIDS.noise_variance


def test_the_table_and_the_reason(result):
    table, reason = result.table, result.reason
    assert all(row["score"] == pytest.approx(np.mean(row["scores"])) for row in table)
    screened = [row for row in table if row["iterations"] == 0]
    assert len(screened) == 2 * 2 * 2 * 2
    assert {len(row["scores"]) for row in screened} == {1, 2}  # the worse half was dropped after the first part
    last = [row for row in table if row["iterations"] == 4]
    winner = min(last, key=lambda row: row["score"])
    assert len(last) == 2
    assert result.loss == winner["score"]
    assert f"loss, {winner['score']:.4g} (next " in reason
    assert f"units {result.parameters['hidden_layer_sizes']}, noise {result.parameters['noise_variance']}" in reason
    for C in np.atleast_1d(result.parameters["C"]):
        assert f"C {C:g}" in reason
    for kernel in np.atleast_1d(winner["kernel"]):
        assert kernel in reason
    assert "2 parts of 40 + 10 training rows, 4 iterations" in reason


def test_learned_length_scales_keep_their_gamma():
    """gamma="scale" means the features as they are; resolved anew on the scaled ones it would be another number."""
    parameters = found(grids=replace(ONE, length_scale=(EVIDENCE,))).parameters
    (kernel,) = set(SETTINGS.with_parameters(parameters).first.kernels(PROBLEM, 3))
    assert kernel == RBF(parameters["length_scale"], pytest.approx(1 / 3))


def test_the_problem_and_the_settings_stay_as_they_are():
    problem = Problem.of(Rows(X, y), NumericTargets)
    before = X.copy()
    found(problem)
    assert problem.grams.held == {}
    np.testing.assert_array_equal(problem.rows.X, before)
    assert SETTINGS.first == KernelLayerSettings()


# -- which rows are seen -----------------------------------------------------------------------------------------------------


def trained_alone(problem, part, grids):
    """The one candidate of the grids, trained on the rows to fit on and nothing else: the oracle of a loss.

    Without another candidate the first rung is the last: a fifth of 20 iterations, of which the last half is averaged.
    """
    own = Problem.of(problem.rows.take(part[0]), NumericTargets)
    kitchen = Kitchen(own.X, own.outputs, own.weights, 0)
    (recipe,), (C,) = grids.recipes, grids.C
    parameters = kitchen.parameters(recipe) | {"C": C, "hidden_layer_sizes": grids.hidden_layer_sizes[0]}
    seed = int(check_random_state(0).randint(np.iinfo(np.int32).max))
    return train(own, replace(SETTINGS.with_parameters(parameters), max_iter=4, n_average=2, seed=seed))


LONGER = replace(SETTINGS, max_iter=20)


def test_validation_rows_are_not_fitted_on():
    part = validation_parts(50, seed=0)[0]
    fit, validation = part
    grids = replace(ONE, length_scale=(EVIDENCE,))
    model = trained_alone(PROBLEM, part, grids)
    changed_X, changed_y = X.copy(), y.copy()
    changed_X[validation], changed_y[validation] = 1e6, -1e6
    for rows, targets in ((X, y), (changed_X, changed_y)):
        loss = found(Problem.of(Rows(rows, targets), NumericTargets), grids, [part], settings=LONGER).loss
        error = ((model.mean(rows[validation]) - targets[validation]) ** 2).mean() / y[fit].var()
        assert loss == pytest.approx(error, rel=1e-6)
    assert loss > 1e6


def test_weights_of_the_validation_rows_count():
    part = np.arange(40), np.arange(40, 50)
    weights = np.ones(50)
    weights[45:] = 1e-12
    problem = Problem.of(Rows(X, y, weights), NumericTargets)
    model = trained_alone(problem, part, ONE)
    error = ((model.mean(X[40:45]) - y[40:45]) ** 2).mean() / y[:40].var()
    assert found(problem, ONE, [part], settings=LONGER).loss == pytest.approx(error, rel=1e-6)


def test_losses_of_classes_are_negative_log_likelihoods():
    problem = Problem.of(Rows(X, LABELS), ClassTargets)
    result = found(problem, parts=validation_parts(50, 0, problem.outputs, repeats=2))
    assert 0 < result.loss < np.log(3)


def test_the_columns_of_a_kernel_matrix_are_those_of_the_rows_to_fit_on():
    K = np.exp(-0.3 * ((PROBLEM.X[:, None] - PROBLEM.X) ** 2).sum(axis=2))
    grids = replace(GRIDS, kernel=("precomputed",), gamma=("scale",), length_scale=(None,))
    result = found(Problem.of(Rows(K, y, pairwise=True), NumericTargets), grids)
    screened = [row for row in result.table if row["iterations"] == 0]
    assert [row["C"] for row in screened] == [1.0, 10.0]
    named = found(grids=replace(grids, kernel=(RBF(None, 0.3),)))  # of the features, standardised a little differently
    np.testing.assert_allclose(
        [row["score"] for row in screened], [row["score"] for row in named.table if row["iterations"] == 0], rtol=0.3
    )


# -- seeds, threads, words ---------------------------------------------------------------------------------------------------


def test_the_seed_decides_and_the_number_of_jobs_changes_nothing(result):
    assert found(n_jobs=2) == result
    assert found(seed=1).table != result.table


def test_progress_goes_to_standard_error(capsys):
    texts = []
    for verbose in (0, 1, 2):
        result = found(verbose=verbose)
        said = capsys.readouterr()
        assert said.out == ""
        texts.append(said.err.splitlines())
    assert texts[0] == []
    assert all(line.startswith("[tune]") for line in texts[1] + texts[2])
    assert "first layer alone: kernels × values of C 8 × 2, validation parts 2" in texts[1][0]
    assert "best first layer: " in texts[1][1]
    trained = sum(row["iterations"] > 0 for row in result.table)
    assert len(texts[2]) == len(texts[1]) + trained


def test_trainings_of_a_search_warn_of_nothing(recwarn):
    found(grids=replace(ONE, hidden_layer_sizes=((4,), (1, 2))))  # the second widens
    assert not recwarn.list


class Failing:
    """A penalty schedule that fails after some calls, in the middle of a training."""

    def __init__(self, after, failure):
        self.left, self.failure = after, failure

    def __call__(self, iteration):
        if self.left == 0:
            raise self.failure
        self.left -= 1
        return 1e-3


@pytest.mark.parametrize("failure", [KeyboardInterrupt, FloatingPointError])
@pytest.mark.parametrize("after", [0, 5, 23])
def test_a_search_that_is_interrupted_ends(failure, after):
    settings = replace(SETTINGS, iro=replace(LOOP, alpha=Failing(after, failure)))
    with pytest.raises(failure):
        found(settings=settings)


# -- what it costs -----------------------------------------------------------------------------------------------------------


class Counting(DenseLayer):
    """A layer that counts the rows of its refits after the first."""

    rows = []

    def refit(self, inputs, outputs, sample_weight=None):
        if self.n_outputs == 1 and self.weights.any():  # the head, once for every iteration
            self.rows.append(len(outputs))
        return super().refit(inputs, outputs, sample_weight)


def test_the_cost_is_that_of_twenty_trainings(monkeypatch):
    """With everything to choose, at few rows: most validation parts. Kernels cost no iterations; others count by their rows."""
    monkeypatch.setitem(UPPER_LAYERS, "counting", Counting.new)
    Counting.rows.clear()
    grids = replace(GRIDS, C=CS, hidden_layer_sizes=SIZES, noise_variance=NOISES)
    settings = replace(SETTINGS, max_iter=5, upper_layer="counting")
    result = found(PROBLEM.part(np.arange(40)), grids, validation_parts(40, seed=0), settings=settings)
    assert 0 < sum(Counting.rows) <= 20 * 5 * 40
    assert {row["iterations"] for row in result.table} == {0, 1, 3, 5}


# -- many rows ---------------------------------------------------------------------------------------------------------------


def test_the_best_are_tried_on_more_rows():
    """Parts of 20 rows, and a larger one of 40."""
    order = np.random.default_rng(3).permutation(50)
    parts = [(order[:16], order[16:20]), (order[20:36], order[36:40])]
    last = np.sort(order[:32]), np.sort(order[32:40])
    result = found(parts=parts, last=last)
    table = result.table
    assert "on 1 part of 32 + 8 training rows, 4 iterations" in result.reason
    assert {row["rows"] for row in table} == {16, 32}
    larger = [row for row in table if row["rows"] == 32]
    gammas = {row["gamma"] for row in larger if row["iterations"] == 0}
    assert max(gammas) == pytest.approx(2 * max(row["gamma"] for row in table if row["rows"] == 16 and row["iterations"] == 0))
    trained = [row for row in larger if row["iterations"] == 4]
    assert 2 <= len(trained) <= 6
    best = min(trained, key=lambda row: row["score"])
    assert result.loss == best["score"]
    # the parameters found are those that won: with the length scales learned on the larger part
    seed = int(check_random_state(0).randint(np.iinfo(np.int32).max))
    fit, validation = last
    model = train(PROBLEM.part(fit), replace(SETTINGS.with_parameters(result.parameters), seed=seed))
    assert model.losses(X[validation], y[validation]).mean() == pytest.approx(best["score"], rel=1e-3)


def test_where_gamma_is_no_choice_it_stays_on_more_rows():
    last = np.arange(32), np.arange(32, 40)
    result = found(grids=replace(ONE, C=(1.0, 10.0)), parts=[(np.arange(16), np.arange(16, 20))], last=last)
    assert {row["gamma"] for row in result.table} == {"scale"}
    assert {row["rows"] for row in result.table} == {16, 32}
