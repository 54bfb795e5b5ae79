"""The page: sections, styles and scripts in one file that needs no network."""

from __future__ import annotations

import base64
import datetime
import hashlib
from dataclasses import dataclass
from importlib.resources import files

from kstonet._words import counted
from kstonet.report.cautions import Caution
from kstonet.report.inputs import Subject
from kstonet.report.markup import Markup, element, join, paragraph

STYLES, SCRIPTS = ("page.css", "chart.css"), ("scale.js", "chart.js", "table.js", "page.js")


@dataclass(frozen=True)
class Section:
    """A part of the page with a heading of its own; ``key`` is its address in the page."""

    key: str
    title: str
    content: list[Markup]


def page(
    title: str,
    subject: Subject,
    headline: list[tuple[str, str, str]],
    cautions: list[Caution],
    sections: list[Section],
    *,
    dated: bool,
) -> str:
    """The whole document."""
    style, script = _read(STYLES), _read(SCRIPTS)
    # The content security policy names the only style and script that may run, so that text mistaken for HTML is inert.
    policy = f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; img-src data:"
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("link", rel="icon", href="data:,"),
        element("title", title),
        element("style", style),
    )
    body = element(
        "body",
        element("a", "Skip to the report", href="#summary", class_="skip"),
        element("header", _heading(title, subject, dated), element("button", "Dark", type="button", id="theme", hidden=True)),
        element("nav", element("ol", *(_entry(section) for section in sections)), aria_label="Sections"),
        element(
            "main",
            element("section", _figures(headline), _cautions(cautions), id="summary", aria_label="Summary"),
            *(_section(section) for section in sections),
            element("noscript", paragraph("The charts need JavaScript, which is disabled. The script is part of this file.")),
        ),
        element("footer", paragraph("Made with kstonet. This file is self-contained and loads nothing from the network.")),
        element("div", id="tooltip", role="status", hidden=True),
        element("script", script),
    )
    return f"<!DOCTYPE html>\n{element('html', head, body, lang='en')}\n"


def _read(names: tuple[str, ...]) -> Markup:
    folder = files("kstonet.report") / "static"
    return Markup("\n".join((folder / name).read_text(encoding="utf-8") for name in names))


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _heading(title: str, subject: Subject, dated: bool) -> Markup:
    told = f"{type(subject.model).__name__}, judged on {counted(subject.n, 'row')}"
    if subject.seen is not None:
        seen = int(subject.seen.sum())
        told += (
            " it was trained on"
            if seen == subject.n
            else f", {seen:,} of them seen in training"
            if seen
            else " it has not seen"
        )
    date = f" · {datetime.date.today().isoformat()}" if dated else ""
    return element("div", element("h1", title), paragraph(f"{told}{date}", class_="subtitle"))


def _entry(section: Section) -> Markup:
    return element("li", element("a", section.title, href=f"#{section.key}"))


def _section(section: Section) -> Markup:
    heading = element("h2", section.title, id=f"{section.key}-heading")
    return element("section", heading, *section.content, id=section.key, aria_labelledby=f"{section.key}-heading")


def _figures(headline: list[tuple[str, str, str]]) -> Markup:
    entries = (
        element("div", element("dt", name), element("dd", element("b", value), element("span", meaning)))
        for value, name, meaning in headline
    )
    return element("dl", *entries, class_="headline")


def _cautions(cautions: list[Caution]) -> Markup:
    if not cautions:
        return paragraph("No problems were found in coverage, training path and data.", class_="fine")
    entries = (
        element("li", element("b", caution.title), " ", caution.text, class_="serious" if caution.serious else "remark")
        for caution in sorted(cautions, key=lambda caution: not caution.serious)
    )
    return join(element("h2", "What to keep in mind"), element("ul", *entries, class_="cautions"))
