"""What the pages take from elsewhere in the repository, so that nothing is typed twice.

Before the build, :func:`collect` writes into ``docs/generated/``: the tables of results as their commands wrote them, and the
help of the command line. :func:`relink` then lets links between files of the repository lead to the pages made of them.
"""

from __future__ import annotations

import importlib
import re
import shutil
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
GENERATED = ROOT / "docs" / "generated"
GALLERY = ROOT / "docs" / "auto_examples"
RESULTS = ("experiments", "benchmarks")
PUBLIC = ("kstonet", *(f"kstonet.{part}" for part in ("metrics", "plotting", "report", "datasets", "tables", "gram")))


def gallery_is_stale() -> bool:
    """Whether the library has changed since the examples were run: then they are run again."""
    ran = [path.stat().st_mtime for path in GALLERY.glob("*.md5")]
    return bool(ran) and min(ran) < max(path.stat().st_mtime for path in (ROOT / "src").rglob("*.py"))


def collect() -> None:
    """Write the pages that are made of other files, and remove those whose file is gone."""
    for page in GALLERY.glob("plot_*.rst"):
        if not (ROOT / "examples" / page.with_suffix(".py").name).exists():
            page.unlink()
    shutil.rmtree(GENERATED / "api", ignore_errors=True)
    for part in RESULTS:
        folder = GENERATED / part
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(ROOT / part / "results", folder, ignore=shutil.ignore_patterns("*.json"))
    (GENERATED / "command_line.md").write_text(command_line_help(), encoding="utf-8")


def command_line_help() -> str:
    """All commands with their options, as the program itself describes them."""
    import typer
    from typer.cli import get_docs_for_click

    from kstonet.cli.app import app

    command = typer.main.get_command(app)
    text = get_docs_for_click(obj=command, ctx=typer.Context(command, info_name="kstonet"), name="kstonet")
    return text.replace("# `kstonet`", "# All commands and options", 1)


def missing_from_api(page: Path) -> list[str]:
    """Public names that the page of the API does not list."""
    module, listed = "", set()
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith(".. currentmodule::"):
            module = line.split()[-1]
        elif module and re.fullmatch(r"   [A-Za-z_]\w*", line):
            listed.add(id(getattr(importlib.import_module(module), line.strip())))
    names = [(part, name) for part in PUBLIC for name in importlib.import_module(part).__all__ if not name.startswith("__")]
    return [f"{part}.{name}" for part, name in names if id(getattr(importlib.import_module(part), name)) not in listed]


def relink(app: Any, docname: str, source: list[str]) -> None:
    """Links to files of the repository: to the page made of the file where there is one."""
    if docname.startswith("auto_examples/"):
        return
    up = "../" * docname.count("/")
    text = re.sub(r"\]\((?:\.\./)+(experiments|benchmarks)/results/([\w-]+\.md)", rf"]({up}generated/\1/\2", source[0])
    text = re.sub(r"\]\((?:\.\./)+examples/(?:plot_)?(\w+)\.py", rf"]({up}auto_examples/plot_\1.rst", text)
    text = re.sub(r"\]\(docs/(\w+\.md)", r"](\1", text)
    text = re.sub(r"\]\((?:\.\./)*(CHANGELOG|CONTRIBUTING)\.md", lambda found: f"]({up}{found[1].lower()}.md", text)
    source[0] = text
