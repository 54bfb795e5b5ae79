"""Draw the figures of "How it works": ``python docs/figures/draw.py`` writes network.svg and training.svg beside this file.

They are put into the page as they are, so that their colours (classes of _static/kstonet.css) follow the light and dark theme.
"""

from __future__ import annotations

from pathlib import Path

HERE = Path(__file__).parent

Point = tuple[float, float]


def svg(width: int, height: int, label: str, parts: list[str]) -> str:
    """One picture, with a description for those who cannot see it."""
    body = "\n  ".join(parts)
    return (
        f'<svg class="figure" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{label}">\n  {ARROW}\n  {body}\n</svg>\n'
    )


ARROW = (
    '<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto">'
    '<path class="tip" d="M0 0 10 5 0 10z"/></marker></defs>'
)


def line(a: Point, b: Point, kind: str = "edge") -> str:
    """A straight line; arrows end in a tip."""
    tip = ' marker-end="url(#tip)"' if kind in ("arrow", "noise") else ""
    return f'<line class="{kind}" x1="{a[0]:g}" y1="{a[1]:g}" x2="{b[0]:g}" y2="{b[1]:g}"{tip}/>'


def circle(at: Point, kind: str, radius: float = 13) -> str:
    """A unit."""
    return f'<circle class="{kind}" cx="{at[0]:g}" cy="{at[1]:g}" r="{radius:g}"/>'


def text(at: Point, words: str, kind: str = "label") -> str:
    """Words, centred."""
    return f'<text class="{kind}" x="{at[0]:g}" y="{at[1]:g}">{words}</text>'


def column(x: float, units: int, middle: float = 170, gap: float = 44) -> list[Point]:
    """The places of the units of a layer."""
    return [(x, middle + gap * (i - (units - 1) / 2)) for i in range(units)]


def network() -> str:
    """A K-StoNet with two hidden layers."""
    features, first, second, output = column(60, 3), column(330, 5), column(510, 3), column(660, 1)
    box = '<rect class="kernel" x="135" y="95" width="100" height="150" rx="10"/>'
    parts = [line((x + 13, y), (135, y)) for x, y in features]
    parts += [line((235, 170), (x - 13, y)) for x, y in first]
    parts += [line((a + 13, b), (x - 13, y)) for a, b in first for x, y in second]
    parts += [line((a + 13, b), (x - 13, y)) for a, b in second for x, y in output]
    parts += [box, text((185, 165), "φ(X)", "name"), text((185, 187), "kernel")]
    for layer, kind in ((features, "input"), (first, "svr"), (second, "regression"), (output, "output")):
        parts += [circle(at, kind) for at in layer]
    for layer, name in ((first, "e₁"), (second, "e₂"), (output, "e₃")):
        x, y = layer[0]
        parts += [line((x, y - 52), (x, y - 18), "noise"), text((x, y - 60), name, "name")]
    for x, name in ((60, "X"), (330, "Y₁"), (510, "Y₂"), (660, "Y")):
        parts.append(text((x, 312), name, "name"))
    below = {60: ("features",), 330: ("a support vector", "regression per unit"), 510: ("penalised", "regressions")}
    below |= {660: ("regression", "or logit"), 185: ("infinitely many", "features")}
    for x, words in below.items():
        parts += [text((x, 333 + 17 * i), word) for i, word in enumerate(words)]
    label = (
        "Features pass a kernel into a layer of support vector regressions, then through penalised regressions to the output"
    )
    return svg(740, 370, f"{label}; every layer has noise of its own.", parts)


def box(x: float, words: tuple[str, ...], kind: str) -> list[str]:
    """A step of the loop."""
    parts = [f'<rect class="{kind}" x="{x:g}" y="40" width="250" height="96" rx="10"/>']
    parts += [text((x + 125, 40 + 32 + 22 * i), word, "name" if i == 0 else "label") for i, word in enumerate(words)]
    return parts


def training() -> str:
    """The two steps of an iteration."""
    parts = box(20, ("1  impute", "draw Y₁, …, Yₕ given X, Y", "and the layers as they are"), "kernel")
    parts += box(470, ("2  refit", "every layer is a convex problem", "on its own inputs and outputs"), "step")
    parts.append(
        f'<path class="arrow" d="M270 70 C 340 40, 400 40, 466 68" marker-end="url(#tip)"/>{text((370, 38), "hidden values")}'
    )
    parts.append(
        f'<path class="arrow" d="M470 112 C 400 142, 340 142, 274 114" marker-end="url(#tip)"/>{text((370, 158), "new layers")}'
    )
    return svg(740, 180, "Training alternates between drawing the hidden values and refitting every layer.", parts)


if __name__ == "__main__":
    for name, picture in (("network", network()), ("training", training())):
        (HERE / f"{name}.svg").write_text(picture, encoding="utf-8")
