"""From a table of 1,000 rows to a report in four commands, in less than 60 s of two cores."""

import time
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest

from kstonet.cli import NEEDED

pytestmark = pytest.mark.skipif(not all(map(find_spec, NEEDED)), reason="the command line is not installed")


def test_from_a_table_to_a_report_in_a_minute(tmp_path, monkeypatch):
    """With the settings of the first call; tests/newcomer/test_afternoon.py has the same commands on fewer rows."""
    from typer.testing import CliRunner

    from kstonet.cli.app import app

    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1300, 4))
    table = pd.DataFrame(X, columns=["a", "b", "c", "d"]).assign(y=np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=1300))
    table.head(1000).to_csv("train.csv", index=False)
    table.tail(300).to_csv("new.csv", index=False)
    started = time.process_time()
    for line in (
        "fit train.csv -t y",
        "evaluate train.kstonet new.csv",
        "predict train.kstonet new.csv -o predictions.csv",
        "report train.kstonet new.csv --train train.csv",
    ):
        result = CliRunner().invoke(app, line.split())
        assert result.exit_code == 0, result.output
    assert time.process_time() - started < 120.0
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Where 90 % intervals cover" in page
    assert "choice of the settings" in page
    assert ">intervals</th>" in page.partition("Where the time of the training went")[2].partition("</table>")[0]
