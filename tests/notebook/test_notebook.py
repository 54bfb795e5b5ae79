"""A notebook in a real Jupyter kernel: what a fitted model shows, and a line of progress that moves (make test-notebook)."""

import os
import re
from pathlib import Path

import pytest

import kstonet

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

CELLS = (
    """
import numpy as np
from kstonet import KStoNetClassifier, KStoNetRegressor
rng = np.random.default_rng(0)
X = rng.normal(size=(80, 2))
y = np.sin(X[:, 0]) + 0.2 * rng.normal(size=80)
""",
    "KStoNetRegressor(random_state=0)",
    "KStoNetRegressor(random_state=0, verbose=1).fit(X, y)",
    "KStoNetClassifier(tuning='none', max_iter=4, random_state=0, verbose=1).fit(X, y > 0)",
    """
from sklearn.preprocessing import StandardScaler
from kstonet.pipeline import make_pipeline
make_pipeline(StandardScaler(), KStoNetRegressor(tuning='none', max_iter=3, random_state=0)).fit(X, y)
""",
    "KStoNetRegressor(gamma='sacle').fit(X, y)",
)


@pytest.fixture(scope="module")
def outputs():
    """The outputs of every cell."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell.strip()) for cell in CELLS])
    source = str(Path(kstonet.__file__).parents[1])
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [source, os.environ.get("PYTHONPATH")]))
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3", allow_errors=True).execute()
    return [cell.outputs for cell in notebook.cells]


def html_of(outputs):
    return "".join(output["data"].get("text/html", "") for output in outputs if output.output_type == "execute_result")


def lines_seen(outputs):
    """What is left of standard error after every carriage return has been obeyed."""
    text = "".join(output.text for output in outputs if output.output_type == "stream" and output.name == "stderr")
    shown = []
    for line in text.split("\n"):
        seen = ""
        for part in line.split("\r"):
            seen = part + seen[len(part) :]
        shown.append(seen.rstrip())
    return text, [line for line in shown if line]


def test_a_model_that_is_not_fitted_has_no_facts(outputs):
    assert "kstonet-fitted" not in html_of(outputs[1])
    assert "KStoNetRegressor" in html_of(outputs[1])


def test_a_regressor_shows_score_intervals_and_choice(outputs):
    shown = re.sub(r"<style>.*?</style>", "", html_of(outputs[2]), flags=re.DOTALL)
    for fact in ("80 rows, ", "R² 0.", "95% intervals reach about −", "kernel ", "leave-one-out error"):
        assert fact in shown.partition("kstonet-fitted")[2]


def test_a_classifier_shows_its_accuracy_out_of_sample(outputs):
    assert re.search(r"accuracy [\d.]+ on the training rows, [\d.]+ out of sample", html_of(outputs[3]))


def test_a_pipeline_shows_its_model(outputs):
    assert "80 rows, 3 iterations" in html_of(outputs[4])


@pytest.mark.parametrize("cell", [2, 3])
def test_progress_is_one_line_that_moves(outputs, cell):
    text, lines = lines_seen(outputs[cell])
    assert len(lines) == 1
    assert lines[0].startswith("[KStoNet")
    assert "intervals prepared" in lines[0]
    assert text.count("\r") >= 4
    assert "\x1b" not in text


def test_an_error_is_a_sentence(outputs):
    (error,) = outputs[5]
    assert (error.output_type, error.ename) == ("error", "ValueError")
    assert "Did you mean 'scale'?" in error.evalue
