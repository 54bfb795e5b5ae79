"""Who watches a training: what they hear, in which order, and what they may ask for."""

import numpy as np
import pytest

from kstonet.imputation.chain import ChainSettings
from kstonet.iro import IROSettings
from kstonet.observers import EarlyStopping, Ends, Iteration, Observer, Progress, Stop
from kstonet.problem import Problem, Rows
from kstonet.settings import KernelLayerSettings, LinearLayerSettings, TrainingSettings
from kstonet.targets import ClassTargets, NumericTargets
from kstonet.training import train

X = np.random.default_rng(0).normal(size=(40, 2))
PROBLEM = Problem.of(Rows(X, np.tanh(X[:, 0])), NumericTargets)
SHORT = IROSettings(ChainSettings(n_steps=2))


def settings(**changes):
    return TrainingSettings(
        LinearLayerSettings(), (2,), iro=SHORT, **({"max_iter": 3, "n_average": 2, "residuals": None} | changes)
    )


class Diary(Observer):
    """Everything it hears, in a list that several may share."""

    def __init__(self, name, pages, wish=None):
        self.name, self.pages, self.wish = name, pages, wish or {}

    def begins(self, task):
        self.pages.append((self.name, f"begins {task}"))

    def iteration(self, done):
        self.pages.append((self.name, (done.chain, done.state.iteration)))
        return self.wish.get((done.chain, done.state.iteration))

    def ended(self, task):
        self.pages.append((self.name, f"ended {task}"))

    def interrupted(self, model):
        self.pages.append((self.name, f"interrupted at {model.n_iter}"))

    def close(self):
        self.pages.append((self.name, "close"))


def heard(pages, name="a"):
    return [what for who, what in pages if who == name]


def test_what_an_observer_hears():
    pages = []
    train(PROBLEM, settings(n_chains=2, residuals="training"), [Diary("a", pages)])
    chain = ["begins chain", *(entry for i in (1, 2, 3) for entry in ("begins iteration", i))]
    expected = [(c, entry) if isinstance(entry, int) else entry for c in (0, 1) for entry in chain]
    assert heard(pages) == [*expected, "close", "begins intervals", "ended intervals"]


def test_without_intervals_there_is_no_such_task():
    pages = []
    train(PROBLEM, settings(), [Diary("a", pages)])
    assert heard(pages)[-1] == "close"


def test_observers_hear_in_the_order_given_whoever_asks_to_stop():
    pages = []
    both = [Diary("a", pages, {(0, 2): Stop.TRAINING}), Diary("b", pages)]
    train(PROBLEM, settings(), both)
    assert heard(pages, "a") == heard(pages, "b")
    assert [who for who, _ in pages] == ["a", "b"] * (len(pages) // 2)


@pytest.mark.parametrize(
    ("stop", "iterations"),
    [(Stop.CHAIN, [(0, 1), (0, 2), (1, 1), (1, 2), (1, 3)]), (Stop.TRAINING, [(0, 1), (0, 2)]), (None, None)],
)
def test_stops_end_a_chain_or_the_training(stop, iterations):
    pages = []
    model = train(PROBLEM, settings(n_chains=2), [Diary("a", pages, {(0, 2): stop})])
    seen = [entry for entry in heard(pages) if isinstance(entry, tuple)]
    assert seen == (iterations or [(c, i) for c in (0, 1) for i in (1, 2, 3)])
    assert [(record["chain"], record["iteration"]) for record in model.history] == seen
    assert len(model.uppers) == (2 if stop is Stop.TRAINING else 4)


def test_the_whole_training_ends_where_one_asks_for_it_and_another_for_the_chain():
    pages = []
    train(PROBLEM, settings(n_chains=2), [Diary("a", pages, {(0, 1): Stop.TRAINING}), Diary("b", pages, {(0, 1): Stop.CHAIN})])
    assert (1, 1) not in heard(pages)


def test_the_model_as_it_stands_is_that_of_a_shorter_training():
    class Models(Observer):
        seen = []

        def iteration(self, done):
            self.seen.append(done.model())

    train(PROBLEM, settings(), [Models()])
    for iterations, model in enumerate(Models.seen, start=1):
        shorter = train(PROBLEM, settings(max_iter=iterations))
        assert model.n_iter == len(model.history) == iterations
        np.testing.assert_array_equal(model.mean(X), shorter.mean(X))


def test_ends_are_the_last_states_of_the_chains():
    ends = Ends()
    model = train(PROBLEM, settings(n_chains=2), [ends])
    assert list(ends.states) == [0, 1]
    assert {state.iteration for state in ends.states.values()} == {3}
    fitted = [state.network.forward(PROBLEM.X)[-1] for state in ends.states.values()]
    np.testing.assert_allclose(model.outputs(X)[[1, 3]], fitted, atol=1e-12)  # the last of each chain's two


# -- early stopping ----------------------------------------------------------------------------------------------------------


def wishes(observer, losses, key="loss"):
    """What early stopping asks for, loss by loss; the training loss falls all the time."""
    records = [{"loss": -float(i), key: loss} for i, loss in enumerate(losses)]
    return [observer.iteration(Iteration(None, record, 0, None)) for record in records]


def test_a_chain_ends_after_some_iterations_without_progress():
    observer = EarlyStopping(tol=0.1, patience=2)
    observer.begins("chain")
    assert wishes(observer, [1.0, 0.95, 0.8, 0.79, 0.75]) == [None, None, None, None, Stop.CHAIN]
    observer.begins("iteration")  # does not matter
    assert wishes(observer, [0.74]) == [Stop.CHAIN]
    observer.begins("chain")  # forgets
    assert wishes(observer, [5.0, 5.0, 4.0, 4.0]) == [None, None, None, None]


def test_validation_rows_decide_where_there_are_some():
    observer = EarlyStopping(tol=0.0, patience=1)
    observer.begins("chain")
    assert wishes(observer, [1.0, 1.0], key="validation_loss") == [None, Stop.CHAIN]


# -- progress ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verbose", [1, 2])
def test_progress_goes_to_standard_error(capsys, verbose):
    watched = PROBLEM.with_validation(Rows(X[:5], np.zeros(5)))
    train(watched, settings(), [Progress("a network", 3, verbose)])
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("[a network]") == 3
    assert said.err.count("validation") == 3
    assert ("3/3" in said.err) == (verbose == 1)
    assert ("seconds: impute" in said.err) == (verbose == 2)


def test_a_network_that_rests_says_so(capsys):
    """Two classes that nothing tells apart: the one-vs-rest machine cannot gain by iterations."""
    labels = np.arange(len(X)) % 5 % 2  # in rows of no order
    problem = Problem.of(Rows(X, labels), ClassTargets)
    train(
        problem, TrainingSettings(KernelLayerSettings(loss="squared"), (1,), residuals=None, max_iter=2), [Progress("a", 2, 2)]
    )
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 2
    assert all(line.endswith("the network rests: iterations no longer help at rows that are hidden from them") for line in said)
