"""HTML that is escaped by construction, and formatting of numbers."""

from __future__ import annotations

import json
import math
from html import escape
from typing import Any

import numpy as np

VOID = {"meta", "input", "link"}  # elements without content
DASH = "–"  # where there is no number


class Markup(str):
    """Text that is HTML already. Every other text is escaped on its way into an element."""

    __slots__ = ()


def element(name: str, /, *children: Any, **attributes: Any) -> Markup:
    """An HTML element.

    Parameters
    ----------
    name : str
        Name of the element.
    *children
        Markup is taken as it is, everything else is escaped; None is left out.
    **attributes
        ``class_`` is class, ``aria_label`` is aria-label; True is an attribute without value, None and False leave it out.

    Returns
    -------
    Markup

    Examples
    --------
    >>> element("p", "1 < 2 & ", element("b", "3"), class_="big")
    '<p class="big">1 &lt; 2 &amp; <b>3</b></p>'
    """
    parts = [name]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        key = key.rstrip("_").replace("_", "-")
        parts.append(key if value is True else f'{key}="{escape(str(value))}"')
    start = f"<{' '.join(parts)}>"
    return Markup(start if name in VOID else f"{start}{join(*children)}</{name}>")


def join(*children: Any) -> Markup:
    """Several pieces one after the other, escaped where they are not markup."""
    pieces = (
        child if isinstance(child, Markup) else escape(str(child), quote=False) for child in children if child is not None
    )
    return Markup("".join(pieces))


def paragraph(*children: Any, class_: str | None = None) -> Markup:
    """A paragraph."""
    return element("p", *children, class_=class_)


def json_script(data: Any) -> Markup:
    r"""Data inside the page: no text in them can end the script element or be read as HTML.

    Examples
    --------
    >>> json_script({"name": "</script>"})
    '<script type="application/json">{"name":"\\u003c/script\\u003e"}</script>'
    """
    text = json.dumps(plain(data), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(f'<script type="application/json">{text}</script>')


def plain(data: Any) -> Any:
    """NumPy's values as JSON has them: floats to six digits, null for what is no number."""
    if isinstance(data, dict):
        return {str(key): plain(value) for key, value in data.items()}
    if isinstance(data, list | tuple | np.ndarray):
        return [plain(value) for value in data]
    if isinstance(data, float | np.floating):
        return float(f"{data:.6g}") if np.isfinite(data) else None
    if isinstance(data, np.integer | np.bool_):
        return data.item()
    return data


def number(value: Any, digits: int = 3) -> str:
    """A number to so many significant digits, without an exponent where it can be read without.

    Examples
    --------
    >>> number(0.0123456), number(1234567.0), number(-2.0), number(1.5e-7), number(float("nan"))
    ('0.0123', '1,234,567', '−2', '1.5e-07', '–')
    """
    value = float(value)
    if not math.isfinite(value):
        return DASH if math.isnan(value) else ("∞" if value > 0 else "−∞")
    size = 0 if value == 0 else math.floor(math.log10(abs(value)))
    if value != 0 and not -5 < size < 12:
        text = f"{value:.{digits}g}"
    else:
        places = max(0, digits - 1 - size)
        text = f"{value:,.{places}f}"
        text = text.rstrip("0").rstrip(".") if "." in text else text
    return text.replace("-", "−", 1) if text.startswith("-") else text


def fixed(value: Any, places: int) -> str:
    """A number with so many decimals, for columns that are read from top to bottom."""
    value = float(value)
    if not math.isfinite(value):
        return number(value)
    text = f"{value:,.{places}f}"
    return text.replace("-", "−", 1) if text.startswith("-") and float(text.replace(",", "")) else text.lstrip("-")


def places_for(values: Any) -> int:
    """Decimals that show three digits of the spread of some numbers; none for whole numbers."""
    values = np.asarray(values, dtype=np.float64)
    values = values[np.isfinite(values)]
    if not len(values) or (values == np.round(values)).all():
        return 0
    spread = float(values.std()) or abs(float(values[0]))
    return int(np.clip(2 - math.floor(math.log10(spread)), 0, 8))


def percent(share: Any, places: int = 1) -> str:
    """A share in per cent.

    Examples
    --------
    >>> percent(0.9512), percent(1.0), percent(0.05, 0), percent(0.0001)
    ('95.1 %', '100 %', '5 %', '<0.1 %')
    """
    if not math.isfinite(share):
        return DASH
    text = f"{100 * share:.{places}f}"
    if share > 0 and float(text) == 0.0:
        return f"<{10.0**-places:g} %"
    return (text.removesuffix(".0") if float(text) in (0.0, 100.0) else text) + " %"


def table(
    head: list[str], rows: list[list[Any]], *, caption: str, texts: tuple[int, ...] = (0,), class_: str | None = None
) -> Markup:
    """A table whose first column names the rows; ``texts`` are the columns that are not numbers."""

    def aligned(k: int) -> str | None:
        return None if k in texts else "number"

    header = element("tr", *(element("th", text, scope="col", class_=aligned(k)) for k, text in enumerate(head)))
    body = [
        element(
            "tr",
            element("th", row[0], scope="row"),
            *(element("td", cell, class_=aligned(k)) for k, cell in enumerate(row[1:], 1)),
        )
        for row in rows
    ]
    inner = element("table", element("caption", caption), element("thead", header), element("tbody", *body), class_=class_)
    return scrolling(inner, caption)


def scrolling(inner: Markup, label: str) -> Markup:
    """A box that scrolls sideways by itself on narrow screens, by keyboard too."""
    return element("div", inner, class_="scroll", tabindex=0, role="region", aria_label=label)
