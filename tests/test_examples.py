"""The form of the examples; tests/long runs them, as the gallery does."""

import re
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("plot_*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_has_the_form_of_the_gallery(path):
    """A title, an introduction, and text between the pieces of code."""
    text = path.read_text(encoding="utf-8")
    title = re.match(r'"""\n(.+)\n(=+)\n\n\S', text)
    assert title, "an example begins with a docstring: its title, underlined, and an introduction"
    assert len(title[1]) == len(title[2])
    assert text.count("\n# %%\n") >= 3


def test_there_are_examples():
    assert len(EXAMPLES) >= 10
