"""Every point of the list has a test, and what no other test runs is at least checked for what it names."""

import re
import shlex
import tomllib
from pathlib import Path

import pytest
from points import POINTS

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("proof", sorted({proof for _, proof in POINTS}))
def test_a_point_has_its_test(proof):
    path, _, name = proof.partition("::")
    assert re.search(rf"^def {name}\(", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE)


def test_ci_runs_docs_browser_and_notebook():
    targets = (ROOT / ".ci" / "run").read_text().split()
    assert {"docs", "test-browser", "test-notebook", "test", "test-long"} <= set(targets)


def test_the_docker_file_installs_and_starts_what_exists():
    """There is no Docker where the tests run: what is copied is there, the extra exists, and the command is one of ours."""
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    lines = {line.split()[0]: line for line in text.splitlines() if line and not line.startswith("#")}
    for line in text.splitlines():
        if line.startswith("COPY"):
            assert all((ROOT / source).exists() for source in shlex.split(line)[1:-1])
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert re.search(r"\[(\w+)\]", lines["RUN"])[1] in project["optional-dependencies"]
    assert {project["readme"], *project["license-files"]} <= set(re.findall(r"README.md|LICENSE", text))
    words = re.findall(r'"([^"]+)"', lines["ENTRYPOINT"])
    assert words[0] in project["scripts"]
    from kstonet.cli.app import app

    commands = {command.callback.__name__ for command in app.registered_commands}
    assert words[1] in commands
    assert re.search(r"EXPOSE (\d+)", text)[1] == words[words.index("--port") + 1]
