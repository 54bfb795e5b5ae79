"""Formulas as MathML: every current browser shows it by itself, so the pages fetch no script and no font."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.util import logging

LOGGER = logging.getLogger(__name__)


def mathml(node: nodes.Element, display: str) -> str:
    """The formula of a node; ``aligned`` is ``split`` to latex2mathml. A command that it does not know stays as it is."""
    text = convert(node.astext().replace("{aligned}", "{split}"), display=display)
    if "\\" in text:
        LOGGER.warning("latex2mathml does not know a command in %r", node.astext(), location=node)
    return text


def inline(translator: Any, node: nodes.math) -> None:
    """A formula in a line of text."""
    translator.body.append(mathml(node, "inline"))
    raise nodes.SkipNode


def block(translator: Any, node: nodes.math_block) -> None:
    """A formula of its own, with its number if it has a label."""
    translator.body.append(translator.starttag(node, "div", CLASS="math"))
    translator.body.append(mathml(node, "block"))
    if node["number"]:
        translator.body.append(f'<span class="eqno">({node["number"]})')
        translator.add_permalink_ref(node, "Link to this equation")
        translator.body.append("</span>")
    translator.body.append("</div>")
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, Any]:
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
