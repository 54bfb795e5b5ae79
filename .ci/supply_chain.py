"""What CI installs: ``licences`` of all of it, and an ``audit`` of known vulnerabilities by pip-audit.

``licences`` needs no network. ``audit`` asks the advisory database of PyPI;
where that cannot be reached it says so, says how many packages were not audited, and does not fail.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

LOCK = Path(__file__).with_name("constraints.txt")
#: Licences that a BSD-licensed package may depend on: permissive ones, and the weak copyleft of single files or libraries.
ALLOWED = re.compile(
    r"\b(mit|bsd|apache|isc|psf|python software foundation|python-2\.0|zlib|0bsd|unlicense|hpnd|cc0|public domain|mpl|mozilla|"
    r"lgpl|lesser general public|cmu|fsf|bsl|boost|wtfpl|ofl|llvm)\b|2-clause|3-clause",
    re.IGNORECASE,
)
FORBIDDEN = re.compile(r"\b(agpl|affero|gpl-[23]|gplv[23]|gnu general public|sspl|proprietary|commercial)\b", re.IGNORECASE)
#: Packages whose metadata say too little, looked up by hand; tools that are run, and not linked, may have other licences.
KNOWN = {"nodeenv": "BSD-3-Clause", "docutils": "public domain, BSD-2-Clause; GPL for one tool that is not used"}


def pins() -> dict[str, str]:
    """Name and version of all packages of the lock file."""
    lines = [line.split("#")[0].strip() for line in LOCK.read_text().splitlines()]
    return dict(line.split("==", 1) for line in lines if line)


def licence(name: str) -> str | None:
    """What an installed package says of its licence; None where it is not installed."""
    try:
        found = metadata.metadata(name)
    except metadata.PackageNotFoundError:
        return None
    classifiers = [each.rsplit("::", 1)[-1].strip() for each in found.get_all("Classifier", []) if each.startswith("License")]
    said = [found.get("License-Expression") or "", *classifiers, (found.get("License") or "")[:120]]
    return "; ".join(part for part in said if part and part != "OSI Approved") or "not said"


def licences() -> int:
    """Refuse what is not permissive, or does not say."""
    wrong, seen = [], 0
    for name in pins():
        said = KNOWN.get(name.lower()) or licence(name)
        if said is None:
            continue
        seen += 1
        if not ALLOWED.search(said) or (FORBIDDEN.search(said) and name.lower() not in KNOWN):
            wrong.append(f"{name}: {said}")
    print(f"licences: {seen} packages, {len(wrong)} not accepted")
    print("\n".join(wrong))
    return 1 if wrong else 0


def audit() -> int:
    """Run pip-audit on the lock file; fail on vulnerabilities, and say what could not be asked."""
    options = ["--requirement", str(LOCK), "--no-deps", "--disable-pip", "--progress-spinner", "off", "--format", "json"]
    try:
        done = subprocess.run([sys.executable, "-m", "pip_audit", *options], capture_output=True, text=True, check=False)
        found = json.loads(done.stdout)["dependencies"]
    except (OSError, ValueError, KeyError):
        print("NOT AUDITED: pip-audit is missing, or the advisory database cannot be reached.")
        return 0
    asked = [package for package in found if "vulns" in package]
    wrong = [package for package in asked if package["vulns"]]
    missing = len(found) - len(asked)
    print(f"audit: {len(asked)} packages, {len(wrong)} with known vulnerabilities")
    for package in wrong:
        print(f"  {package['name']} {package['version']}: {', '.join(each['id'] for each in package['vulns'])}")
    if missing:
        print(f"NOT AUDITED: the advisory database did not answer for {missing} of {len(found)} packages.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit({"licences": licences, "audit": audit}[sys.argv[1]]())
