"""The lock file of CI, licences and known vulnerabilities of what it installs, and that nothing is asked of a network."""

import importlib.util
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / ".ci" / "supply_chain.py"

pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="a source distribution has no CI")


@pytest.fixture(scope="module")
def chain() -> ModuleType:
    spec = importlib.util.spec_from_file_location("supply_chain", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_lock_holds_what_the_package_needs(chain: ModuleType) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    locked = {name.lower().replace("_", "-") for name in chain.pins()}
    needed = {re.match(r"[\w-]+", line)[0].lower() for line in project["dependencies"]}  # type: ignore[index]
    assert needed <= locked
    assert {"safetensors", "typer", "pandas", "pytest", "hypothesis", "ruff", "mypy"} <= locked
    assert all(re.fullmatch(r"[\w.!+]+", version) for version in chain.pins().values())


def test_licences_are_accepted(chain: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert chain.licences() == 0, capsys.readouterr().out


@pytest.mark.parametrize(
    ("said", "accepted"), [("MIT License", True), ("BSD-3-Clause", True), ("GPL-3.0-only", False), ("not said", False)]
)
def test_other_licences_are_refused(said: str, accepted: bool, chain: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chain, "pins", lambda: {"some-package": "1.0"})
    monkeypatch.setattr(chain, "licence", lambda name: said)
    assert (chain.licences() == 0) is accepted


@pytest.mark.parametrize(
    ("answer", "code", "words"),
    [
        ([{"name": "a", "version": "1", "vulns": []}], 0, "1 packages, 0 with"),
        ([{"name": "a", "version": "1", "vulns": [{"id": "PYSEC-1"}]}], 1, "a 1: PYSEC-1"),
        ([{"name": "a", "skip_reason": "not found"}], 0, "NOT AUDITED: .* 1 of 1 packages"),
        (None, 0, "NOT AUDITED: pip-audit is missing"),
    ],
)
def test_an_audit_says_what_it_knows(
    answer: Any, code: int, words: str, chain: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = "" if answer is None else json.dumps({"dependencies": answer})
    monkeypatch.setattr(chain.subprocess, "run", lambda *args, **options: SimpleNamespace(stdout=out))
    assert chain.audit() == code
    assert re.search(words, capsys.readouterr().out)


OFFLINE = """
import socket

def refuse(*args, **options):
    raise AssertionError("a connection was opened")

socket.socket.connect = socket.socket.connect_ex = socket.socket.bind = socket.socket.sendto = refuse
socket.getaddrinfo = socket.create_connection = refuse
import tempfile
import numpy as np
import kstonet
from kstonet import KStoNetClassifier, KStoNetRegressor, StoNetRegressor
X = np.random.default_rng(0).normal(size=(220, 2))  # of fewer rows ten choices follow the first, for the intervals
for model in (KStoNetRegressor(max_iter=2), KStoNetClassifier(max_iter=2), StoNetRegressor(max_iter=2)):
    model.fit(X, X[:, 0] > 0).predict(X)
    with tempfile.NamedTemporaryFile(suffix=".kstonet") as file:
        kstonet.save(model, file.name)
        kstonet.load(file.name)
import kstonet.cli, kstonet.report, kstonet.onnx_export, kstonet.datasets
print("no connection")
"""


def test_no_network_at_import_fit_predict_and_load() -> None:
    done = subprocess.run([sys.executable, "-c", OFFLINE], capture_output=True, text=True, check=False)
    assert done.stdout == "no connection\n", done.stderr[-1500:]
