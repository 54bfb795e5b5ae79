"""The command line as a process of its own: pipes, Ctrl-C, exit codes."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import kstonet
from kstonet.persistence import read_metadata
from kstonet.tuning.fast import ITERATIONS

ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(kstonet.__file__).parents[1]), "COLUMNS": "200"}


def process(*words, **options):
    command = [sys.executable, "-m", "kstonet.cli", *map(str, words)]
    return subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


def test_a_pipe_in_and_json_out(tmp_path, flats, run):
    path = tmp_path / "m.kstonet"
    words = ("fit", "-", "-t", "price", "--tuning", "none", "--max-iter", 3, "--json", "-o", path)
    with process(*words, stdin=subprocess.PIPE) as fit:
        out, err = fit.communicate(flats.to_csv(index=False))
    assert fit.returncode == 0, err
    assert json.loads(out)["rows"] == 80
    assert "Trained" in err
    new = flats.drop(columns="price").to_csv(index=False, sep="\t")
    assert len(run("predict", path, "-", "--format", "tsv", stdin=new).stdout.splitlines()) == 81


@pytest.mark.skipif(os.name != "posix", reason="a terminal of POSIX")
@pytest.mark.parametrize(
    ("options", "first", "total"),
    [
        ((), "choosing kernel and width", ITERATIONS["squared"]),
        (("--tuning", "none", "--max-iter", 3), "0/4  building the kernel matrix; Ctrl-C stops and keeps the model", 3),
    ],
)
def test_a_terminal_shows_the_training_in_one_line_and_then_clears_it(tmp_path, make_flats, options, first, total):
    import pty

    flats = make_flats(220)  # of fewer rows ten choices follow the first, for the intervals
    flats.to_csv(tmp_path / "flats.csv", index=False)
    words = ("fit", tmp_path / "flats.csv", "-t", "price", *options, "--out", tmp_path / "m.kstonet")
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "kstonet.cli", *map(str, words)]
    with subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=theirs) as fit:
        os.close(theirs)
        shown = b""
        with contextlib.suppress(OSError), open(ours, "rb", buffering=0) as terminal:  # the error is the end of the terminal
            while part := terminal.read(4096):
                shown += part
    assert fit.returncode == 0, shown.decode()
    moved = [line.removesuffix("\x1b[K") for line in shown.decode().split("\r") if line.startswith("[training]")]
    assert moved[0] == f"[training] {first}" if "none" not in options else first in moved[0]
    steps = total + 1  # the last one are the intervals
    assert all(f"/{steps}  loss" in line and "Ctrl-C stops" in line for line in moved[1:-2])
    assert f"{total}/{steps}  preparing intervals" in moved[-2]
    assert f"{steps}/{steps}  intervals prepared" in moved[-1]
    assert len(moved) == steps + 2
    follows = "Trained" if "none" in options else "Chosen"
    assert f"\r\x1b[K{follows}" in shown.decode() or f"\r\x1b[K\x1b[1;36m{follows}" in shown.decode()


def test_a_log_has_lines_of_the_training_only_unless_quiet(tmp_path, flats):
    flats.to_csv(tmp_path / "flats.csv", index=False)
    words = ("fit", tmp_path / "flats.csv", "-t", "heat", "--max-iter", 30, "--out", tmp_path / "m.kstonet")
    with process(*words) as fit:
        _, err = fit.communicate()
    assert err.count("[training]") == 11
    assert "\r" not in err
    with process(*words, "--max-iter", 2, "--quiet") as fit:
        assert fit.communicate() == ("", "")


@pytest.mark.skipif(os.name != "posix", reason="sends a POSIX signal")
def test_ctrl_c_keeps_the_model(tmp_path, flats, run):
    table, path = tmp_path / "flats.csv", tmp_path / "m.kstonet"
    flats.to_csv(table, index=False)
    with process("fit", table, "-t", "price", "--tuning", "none", "--max-iter", 1_000, "--json", "-o", path) as fit:
        assert any("[training]" in line for line in iter(fit.stderr.readline, ""))  # a tenth of the training is done
        fit.send_signal(signal.SIGINT)
        out, err = fit.communicate(timeout=60)
    assert fit.returncode == 130, err
    found = json.loads(out)
    assert found["interrupted"] is True
    assert 100 <= found["iterations"] < 1_000
    assert read_metadata(path)["training"]["interrupted"] is True
    predictions = run("predict", path, table).stdout.splitlines()
    assert predictions[0] == "mean,std,lower_95,upper_95"
    assert len(predictions) == 81


@pytest.mark.skipif(os.name != "posix", reason="pipes of POSIX")
def test_the_reader_of_a_pipe_may_go_away(tmp_path, flats, regression):
    new = tmp_path / "many.csv"
    pd.concat([flats] * 30).to_csv(new, index=False)  # more than a pipe holds
    with process("predict", regression[1], new) as predict:
        predict.stdout.readline()
        predict.stdout.close()
        assert predict.stderr.read() == ""
