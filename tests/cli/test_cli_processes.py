"""The command line as a process of its own: pipes, Ctrl-C, exit codes."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

import kstonet
from kstonet.persistence import read_metadata

ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(kstonet.__file__).parents[1]), "COLUMNS": "200"}


def process(*words, **options):
    command = [sys.executable, "-m", "kstonet.cli", *map(str, words)]
    return subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


def test_a_pipe_in_and_json_out(tmp_path, flats, run):
    path = tmp_path / "m.kstonet"
    with process("fit", "-", "-t", "price", "--max-iter", 3, "--json", "-o", path, stdin=subprocess.PIPE) as fit:
        out, err = fit.communicate(flats.to_csv(index=False))
    assert fit.returncode == 0, err
    assert json.loads(out)["rows"] == 80
    assert "Trained" in err
    new = flats.drop(columns="price").to_csv(index=False, sep="\t")
    assert len(run("predict", path, "-", "--format", "tsv", stdin=new).stdout.splitlines()) == 81


@pytest.mark.skipif(os.name != "posix", reason="sends a POSIX signal")
def test_ctrl_c_keeps_the_model(tmp_path, flats, run):
    table, path = tmp_path / "flats.csv", tmp_path / "m.kstonet"
    flats.to_csv(table, index=False)
    with process("fit", table, "-t", "price", "--max-iter", 100_000, "--json", "-o", path) as fit:
        assert fit.stderr.readline().startswith("Table")  # the training begins
        time.sleep(3.0)
        fit.send_signal(signal.SIGINT)
        out, err = fit.communicate(timeout=60)
    assert fit.returncode == 130, err
    found = json.loads(out)
    assert found["interrupted"] is True
    assert 1 <= found["iterations"] < 100_000
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
