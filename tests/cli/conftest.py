"""Models fitted on a small table once, and a way to run commands."""

from importlib.util import find_spec

import pytest

from kstonet.cli import NEEDED

collect_ignore_glob = [] if all(map(find_spec, NEEDED)) else ["test_*.py"]


def invoke(words, stdin=None):
    from typer.testing import CliRunner

    from kstonet.cli.app import app

    return CliRunner().invoke(app, [str(word) for word in words], input=stdin)


@pytest.fixture(autouse=True, scope="module")
def _rough(within_few_folds, within_few_steps):
    """Commands are the same for choices and intervals of any quality."""
    with within_few_folds(), within_few_steps():
        yield


@pytest.fixture
def run(monkeypatch):
    """Run a command in this process; the terminal is wide, so that messages are not broken."""
    monkeypatch.setenv("COLUMNS", "400")

    def run(*words, code=0, stdin=None):
        result = invoke(words, stdin)
        assert result.exit_code == code, result.output
        return result

    return run


@pytest.fixture(scope="session")
def regression(tmp_path_factory, make_flats, within_few_folds, within_few_steps):
    """A table and the model of ``kstonet fit``."""
    with within_few_folds(), within_few_steps():
        return _fitted(tmp_path_factory.mktemp("regression"), make_flats(), "price")


@pytest.fixture(scope="session")
def classification(tmp_path_factory, make_flats, within_few_folds, within_few_steps):
    with within_few_folds(), within_few_steps():
        return _fitted(tmp_path_factory.mktemp("classification"), make_flats(), "heat")


def _fitted(folder, flats, target):
    table, model = folder / "flats.csv", folder / "flats.kstonet"
    flats.to_csv(table, index=False)
    result = invoke(["fit", table, "--target", target, "--out", model, "--max-iter", 4])
    assert result.exit_code == 0, result.output
    return table, model
