"""Every Python block of the README and of docs/ runs as pasted."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_code_blocks_run(path):
    blocks = re.findall(r"```python\n(.*?)```", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    exec("\n".join(blocks), {"__name__": "__document__"})  # one document is one session


def test_the_readme_has_code():
    assert "```python" in DOCUMENTS[0].read_text(encoding="utf-8")
