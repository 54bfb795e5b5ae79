"""Links from the HTML diagram of an estimator to its page in the documentation."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, metadata


@cache
def documentation_url() -> str:
    """The address named "Documentation" among the project's URLs; empty where the package names none, or is not installed."""
    try:
        entries = metadata("kstonet").get_all("Project-URL") or []
    except PackageNotFoundError:
        return ""
    addresses: dict[str, str] = dict(entry.split(", ", 1) for entry in entries)
    return addresses.get("Documentation", "").rstrip("/")


class DocumentationLink:
    """What scikit-learn asks an estimator when it draws the diagram: the estimators of this package have pages of their own."""

    _doc_link_module = "kstonet"

    @property
    def _doc_link_template(self) -> str:
        root = documentation_url()
        return f"{root}/generated/api/kstonet.{{estimator_name}}.html" if root else ""
