"""Ctrl-C at every stage of a training: the signal is raised where the stage calls something."""

import json
import signal

import pytest

import kstonet
from kstonet import observers
from kstonet.cli import predict
from kstonet.estimators.callbacks import UserCallback
from kstonet.layers.ridge import RidgeLayer
from kstonet.targets import numbers
from kstonet.tuning import joined, judging
from kstonet.uncertainty import calibration
from kstonet.uncertainty.network import NetworkUncertainty


@pytest.fixture
def interrupt(monkeypatch):
    """Make a function raise SIGINT at one of its calls, before it does its work."""

    def interrupt(owner, name, call=1):
        original, count = getattr(owner, name), 0

        def interrupted(*args, **kwargs):
            nonlocal count
            count += 1
            if count == call:
                signal.raise_signal(signal.SIGINT)
            return original(*args, **kwargs)

        monkeypatch.setattr(owner, name, interrupted)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a process started in the background ignores Ctrl-C
    yield interrupt
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def fit(run, tmp_path, flats, interrupt):
    """Fit, interrupted: what the command said, and the first line of predictions if there is a model."""
    flats.to_csv(tmp_path / "flats.csv", index=False)
    handler = signal.getsignal(signal.SIGINT)

    def fit(*options, target="price"):
        path = tmp_path / "m.kstonet"
        result = run("fit", tmp_path / "flats.csv", "-t", target, "--max-iter", 6, "-o", path, "--json", *options, code=130)
        assert signal.getsignal(signal.SIGINT) is handler
        assert "Traceback" not in result.output
        if not path.exists():
            return result, None
        assert json.loads(result.stdout)["interrupted"]
        assert kstonet.load(path).callback is None
        return result, run("predict", path, tmp_path / "flats.csv", "-q").stdout.splitlines()[0]

    return fit


@pytest.mark.parametrize("quiet", [[], ["-q"]])
def test_while_it_trains(fit, interrupt, quiet):
    interrupt(observers.Ends, "iteration", call=3)
    result, columns = fit("--tuning", "none", *quiet)
    assert json.loads(result.stdout)["iterations"] == 3
    assert columns == "mean,std,lower_95,upper_95"


def test_before_the_first_iteration(fit, interrupt):
    interrupt(numbers, "stacked_start")
    result, columns = fit()
    assert columns is None
    assert result.stdout == ""
    assert result.stderr.endswith("Error: interrupted.\n")


def test_while_kernel_and_width_are_chosen(fit, interrupt):
    interrupt(judging.Rows, "best_width")
    result, columns = fit()
    assert columns is None
    assert result.stderr.endswith("Error: interrupted.\n")


def test_while_a_choice_is_made_without_some_rows(fit, interrupt):
    interrupt(joined, "_judged", call=2)
    result, columns = fit()
    assert columns is None
    assert result.stderr.endswith("Error: interrupted.\n")


def test_while_intervals_are_calibrated(fit, interrupt):
    interrupt(calibration, "left_out_moments")
    result, columns = fit()
    assert "Note: interrupted while intervals were prepared" in result.stderr
    assert json.loads(result.stdout)["iterations"] == 6
    assert columns == "mean,std,lower_95,upper_95"


def test_as_soon_as_intervals_are_begun(fit, interrupt):
    interrupt(NetworkUncertainty, "of")
    result, columns = fit()
    assert "Note: interrupted while intervals were prepared" in result.stderr
    assert columns == "mean,std,lower_95,upper_95"


def test_twice(fit, interrupt):
    for target, columns in (("price", "mean"), ("heat", "class,p_gas,p_oil,p_wood")):
        interrupt(observers.Ends, "iteration", call=2)
        interrupt(RidgeLayer, "exact")  # what is still done for the intervals
        result, found = fit(target=target)
        assert json.loads(result.stdout)["iterations"] == 2
        assert "the model predicts without them" in result.stderr
        assert found == columns


def test_while_parameters_are_searched(fit, interrupt):
    interrupt(observers.Ends, "iteration", call=2)  # of a candidate, which alone would end
    result, columns = fit("--tune")
    assert columns is None
    assert result.stderr.endswith("Error: interrupted.\n")


def test_after_a_search(run, tmp_path, flats, interrupt):
    """The search is done, the training of the chosen network is not: what was tried is shown all the same."""
    flats.head(40).to_csv(tmp_path / "flats.csv", index=False)
    interrupt(UserCallback, "iteration", call=2)  # a search calls no callbacks
    result = run("tune", tmp_path / "flats.csv", "-t", "price", "--max-iter", 3, "--over", "C", code=130)
    assert "Chosen: rbf" in result.stdout


def test_other_commands(run, regression, interrupt):
    interrupt(predict, "score")
    result = run("evaluate", *reversed(regression), code=130)
    assert result.output == "Error: interrupted.\n"
