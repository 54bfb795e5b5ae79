"""Outputs never replace inputs or files of another kind, and a result that cannot be written is not lost."""

import json
import os
import re
from pathlib import Path

import pytest

import kstonet


def test_inputs_are_not_overwritten(run, regression, tmp_path):
    table, model = regression
    copy, link = tmp_path / "train.csv", tmp_path / "link.csv"
    copy.write_bytes(table.read_bytes())
    link.symlink_to(copy)
    before = copy.read_bytes()
    for words in (
        ("fit", copy, "-t", "price", "-o", copy),
        ("fit", link, "-t", "price", "-o", copy),  # the same file by another name
        ("tune", copy, "-t", "price", "-o", copy),
        ("predict", model, copy, "-o", copy),
        ("report", model, copy, "-o", copy),
        ("report", model, table, "--train", copy, "-o", copy),
    ):
        said = run(*words, code=2).stderr
        assert "is a file that this command reads" in said
        assert "--force" in said
        assert copy.read_bytes() == before
    before = model.read_bytes()
    assert "is a file that this command reads" in run("report", model, table, "-o", model, code=2).stderr
    assert model.read_bytes() == before


def test_files_of_another_kind_are_not_overwritten(run, regression, tmp_path):
    table, model = regression
    other, page = tmp_path / "other.csv", tmp_path / "index.html"
    other.write_text("a,b\n1,2\n")
    page.write_text("<!doctype html><title>mine</title>")
    for words, message in (
        (("fit", table, "-t", "price", "-o", other), "is not a model of kstonet"),
        (("predict", model, table, "-o", other), "does not hold predictions of kstonet"),
        (("report", model, table, "-o", page), "is not a report of kstonet"),
    ):
        assert message in run(*words, code=2).stderr
    assert other.read_text() == "a,b\n1,2\n"
    assert page.read_text().endswith("mine</title>")


def test_own_results_are_replaced_and_force_replaces_all(run, regression, tmp_path):
    table, model = regression
    predictions, empty = tmp_path / "p.csv", tmp_path / "empty.csv"
    run("predict", model, table, "-o", predictions)
    run("predict", model, table, "-o", predictions, "--coverage", 0.8)  # predictions over predictions
    assert "lower_80" in predictions.read_text()
    empty.touch()
    run("predict", model, table, "-o", empty)
    other = tmp_path / "other.csv"
    other.write_text("a,b\n1,2\n")
    run("predict", model, table, "-o", other, "--force")
    assert other.read_text().startswith("mean,")


def test_a_folder_that_cannot_be_written_to_is_found_before_training(run, regression, tmp_path, monkeypatch):
    table, _ = regression

    def refuse(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.NamedTemporaryFile", refuse)
    monkeypatch.setattr("kstonet.cli.fit.read_table", lambda *_: pytest.fail("the table was read"))
    said = run("fit", table, "-t", "price", "-o", tmp_path / "m.kstonet", code=2).stderr
    assert said.startswith("Error: No space left on device; name a file elsewhere")


def test_a_model_that_cannot_be_written_is_saved_elsewhere(run, regression, tmp_path, monkeypatch):
    table, _ = regression
    out, replace = tmp_path / "m.kstonet", os.replace

    def fails_here(source, target):
        if Path(target) == out:
            raise OSError(30, "Read-only file system", str(target))
        replace(source, target)

    monkeypatch.setattr("os.replace", fails_here)
    result = run("fit", table, "-t", "price", "--tuning", "none", "--max-iter", 2, "--json", "-o", out, code=2)
    elsewhere = json.loads(result.stdout)["model"]
    assert re.search(r"could not be written \(Read-only file system\). The result is not lost: it is in '", result.stderr)
    assert elsewhere in result.stderr
    assert not out.exists()
    assert kstonet.load(elsewhere).n_iter_ == 2


def test_texts_that_start_a_formula_are_escaped_by_option_and_said(run, tmp_path):
    table = tmp_path / "t.csv"
    rows = [f"{k % 7},{'=HYPERLINK(1)' if k % 2 else 'plain'},{'@a' if k % 3 else 'b'}" for k in range(30)]
    table.write_text("\n".join(["x,kind,label", *rows]))
    run("fit", table, "-t", "label", "-o", tmp_path / "m.kstonet", "--max-iter", 2)
    plain, safe = tmp_path / "p.csv", tmp_path / "s.csv"
    said = run("predict", tmp_path / "m.kstonet", table, "-o", plain, "--keep", "kind").stderr
    assert "--escape-formulas" in said
    assert "\n=HYPERLINK" in plain.read_text()
    said = run("predict", tmp_path / "m.kstonet", table, "-o", safe, "--keep", "kind", "--escape-formulas").stderr
    assert "now start with an apostrophe" in said
    lines = safe.read_text().splitlines()
    assert not any(cell.startswith(("=", "@")) for line in lines for cell in line.split(","))
    assert any("'=HYPERLINK" in line and "'@a" in line for line in lines[1:])


def test_classes_whose_columns_collide_are_refused(run, tmp_path):
    table = tmp_path / "t.csv"
    table.write_text("\n".join(["x,label", *(f"{k % 7},{'x' if k % 2 else 'x_lower_95'}" for k in range(30))]))
    run("fit", table, "-t", "label", "-o", tmp_path / "m.kstonet", "--max-iter", 2)
    said = run("predict", tmp_path / "m.kstonet", table, "-o", tmp_path / "p.csv", code=2).stderr
    assert "two columns of the predictions would be called 'p_x_lower_95'" in " ".join(said.split())
    assert not (tmp_path / "p.csv").exists()


@pytest.mark.skipif(os.name != "posix", reason="devices of POSIX")
def test_predictions_are_written_to_devices_and_pipes(run, regression, tmp_path):
    table, model = regression
    before = os.stat("/dev/null").st_mode
    assert "to /dev/null" in run("predict", model, table, "-o", "/dev/null").stderr
    assert os.stat("/dev/null").st_mode == before
    assert "No space left" in run("predict", model, table, "-o", "/dev/full", code=2).stderr
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        run("predict", model, table, "-o", pipe)
        assert os.read(reader, 2**16).startswith(b"mean,std,lower_95,upper_95")
    finally:
        os.close(reader)
    assert pipe.is_fifo()
    assert "is not clear from its name" in run("predict", model, table, "-o", tmp_path, code=2).stderr
