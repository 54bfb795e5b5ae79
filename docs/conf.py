"""Sphinx settings. ``make docs`` builds the pages without a network."""

from __future__ import annotations

import inspect
import re
import sys
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent / "src")]

import collected  # noqa: E402

import kstonet  # noqa: E402

project = "kstonet"
author = "The kstonet developers"
copyright = author
version = release = kstonet.__version__
language = "en"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "mathml",
]
exclude_patterns = ["_build", "_ext", "figures", "Thumbs.db"]
templates_path = ["_templates"]
myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
html_math_renderer = "mathml"

# -- API ---------------------------------------------------------------------------------------------------------------------

autosummary_generate = True
autodoc_typehints = "none"  # the docstrings have the types
autodoc_member_order = "bysource"
numpydoc_show_class_members = False  # the templates list them
numpydoc_class_members_toctree = False

# -- gallery -----------------------------------------------------------------------------------------------------------------

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"/plot_" if find_spec("optuna") else r"/plot_(?!optuna)",  # shown in any case, run where it can
    "ignore_pattern": r"(^|/)(?!plot_)[^/]*\.py$",
    "within_subsection_order": "gallery_order.Place",
    "abort_on_example_error": True,
    "backreferences_dir": "generated/backreferences",
    "doc_module": ("kstonet",),
    "reference_url": {"kstonet": None},
    "image_srcset": ["2x"],
    "reset_modules": ("matplotlib",),
    "remove_config_comments": True,
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 3600,
    "write_computation_times": False,
    "run_stale_examples": collected.gallery_is_stale(),
}
warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")

# -- pages -------------------------------------------------------------------------------------------------------------------

html_theme = "furo"
html_title = f"kstonet {version}"
html_static_path = ["_static"]
html_css_files = ["kstonet.css"]
html_favicon = html_logo = "_static/logo.svg"
html_copy_source = False
html_show_sphinx = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#005a8e", "color-brand-content": "#0072b2"},
    "dark_css_variables": {"color-brand-primary": "#7cc4f0", "color-brand-content": "#6fb9e8"},
}
copybutton_exclude = ".linenos, .gp, .go"

# What scikit-learn adds to every estimator: described there, in words that point into its own pages.
OF_SCIKIT_LEARN = re.compile(r"set_(\w+_request|output|callbacks|params)|get_metadata_routing|get_params|fit_transform")


def skip_member(app: Any, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """Leave out what other libraries define."""
    if OF_SCIKIT_LEARN.fullmatch(name):
        return True
    module = getattr(inspect.unwrap(obj) if callable(obj) else obj, "__module__", None) or ""
    return True if what == "class" and callable(obj) and not module.startswith(("kstonet", "sklearn")) else None


# reStructuredText reads |x| as a substitution and a name that ends in an underscore as a link. In docstrings |x| is an absolute
# value and n_features_in_ an attribute, also in the types, which numpydoc hands on as they are.
MARKUP = re.compile(r'(?<![\w`|])\|(?=\w)|(?<=\w)_(?=["),])')
LITERAL = re.compile(r"(``.*?``|`[^`]*`)")


def escape_names(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Escape what is not meant as markup, outside literals and examples; labels of scikit-learn's pages become plain words."""
    foreign = (getattr(obj, "__module__", None) or "").startswith("sklearn")
    for i, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            parts = LITERAL.split(line)
            line = "".join(part if part.startswith("`") else MARKUP.sub(r"\\\g<0>", part) for part in parts)
        lines[i] = re.sub(r":ref:`([^<`]+?)(?: <[^`]*>)?`", r"\1", line) if foreign else line


def setup(app: Any) -> None:
    """Write the generated pages, and connect what happens while Sphinx reads."""
    missing = collected.missing_from_api(HERE / "api.md")
    if missing:
        raise ValueError(f"docs/api.md does not list {', '.join(missing)}; add the names to its lists.")
    collected.collect()
    app.connect("source-read", collected.relink)
    app.connect("autodoc-skip-member", skip_member)
    app.connect("autodoc-process-docstring", escape_names)
