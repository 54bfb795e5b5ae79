"""The documents: code runs as pasted, links and names exist, figures are those of the results files, the language is plain."""

import importlib.util
import io
import re
import tokenize
from pathlib import Path

import pytest

import kstonet
import kstonet.metrics
import kstonet.plotting

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
DOCUMENTS = [README, *sorted((ROOT / "docs").glob("*.md"))]
SOURCES = sorted((ROOT / "src" / "kstonet").rglob("*.py"))
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
each_document = pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)


def text_of(path):
    return path.read_text(encoding="utf-8")


@each_document
def test_code_blocks_run(path, few_folds, few_steps):
    blocks = re.findall(r"```python\n(.*?)```", text_of(path), flags=re.DOTALL)
    exec("\n".join(blocks), {"__name__": "__document__"})  # the blocks of a document share their names


def test_the_readme_has_code():
    assert "```python" in text_of(README)


@each_document
def test_links_lead_to_files(path):
    """Links to other files of the repository; the gallery and the generated pages exist only after a build."""
    built = ("auto_examples/", "generated/")
    for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text_of(path)):
        if "://" not in link and not link.startswith(built):
            assert (path.parent / link).exists(), link


@each_document
def test_links_lead_to_sections(path):
    for link, anchor in re.findall(r"\]\(([\w/.]*\.md)#([\w-]+)\)", text_of(path)):
        headings = re.findall(r"^#+ (.+)$", text_of(path.parent / link), flags=re.MULTILINE)
        anchors = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
        assert anchor in anchors, f"{link}#{anchor}"


def known_names():
    """Names in the code of the library and of what is built on it, and strings that are a single name."""
    parts = ("src", "experiments", "benchmarks", "examples", "tests/extension", "tests/reliability")
    paths = [path for part in parts for path in (ROOT / part).rglob("*.py")]
    names = {path.stem for path in paths}
    for path in paths:
        for token in tokenize.generate_tokens(io.StringIO(text_of(path)).readline):
            if token.type in (tokenize.NAME, tokenize.STRING):
                names.add(token.string.strip("\"'"))
    return names


def test_names_in_code_exist():
    """Names with an underscore between backticks are those of the library; X_more, y_new and the like are arguments."""
    known = known_names() | {"OPENBLAS_NUM_THREADS", "lower_95", "upper_95"}  # columns of predictions
    for path in DOCUMENTS:
        prose = re.sub(r"```.*?```", "", text_of(path), flags=re.DOTALL)
        for code in re.findall(r"`([^`\n]+)`", prose):
            if code.startswith("sklearn."):
                continue
            for name in re.findall(r"\b(?![Xy]_)[A-Za-z]\w*_\w*\b", code):
                assert name in known, f"{path.name}: `{code}` names {name}, which does not exist"


def test_roles_lead_to_objects():
    """{py:class}`~kstonet.layers.base.Layer` and the like name objects that can be imported."""
    for path in DOCUMENTS:
        for target in re.findall(r"\{py:\w+\}`(?:[^<`]*<)?~?([\w.]+)>?`", text_of(path)):
            parts = target.split(".")
            for split in range(len(parts), 0, -1):
                try:
                    found = importlib.import_module(".".join(parts[:split]))
                except ModuleNotFoundError:
                    continue
                for name in parts[split:]:
                    found = getattr(found, name)
                break
            else:
                pytest.fail(f"{path.name}: {target}")


def test_public_names_are_in_the_api():
    page = text_of(ROOT / "docs" / "api.md")
    for module in (kstonet, kstonet.metrics, kstonet.plotting):
        for name in module.__all__:
            assert name.startswith("__") or re.search(rf"^   {name}$", page, flags=re.MULTILINE), name


def test_names_of_the_api_exist():
    module = None
    for line in text_of(ROOT / "docs" / "api.md").splitlines():
        if found := re.match(r"\.\. currentmodule:: (\S+)$", line):
            missing = found[1] == "kstonet.dask" and importlib.util.find_spec("distributed") is None  # an extra
            module = None if missing else importlib.import_module(found[1])
        elif module and (found := re.match(r"   ([A-Za-z_]\w*)$", line)):
            assert hasattr(module, found[1]), f"{module.__name__}.{found[1]}"


def rows_of(text, after=""):
    """Cells of the tables of a Markdown document, row by row."""
    lines = text[text.index(after) :].splitlines()
    return [[cell.strip(" *") for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]


def test_the_table_of_the_readme_is_that_of_the_results():
    """Every figure of the README's table is in experiments/results/uci.md, for the same set and model."""
    results = rows_of(text_of(ROOT / "experiments" / "results" / "uci.md"))
    first = {row[0]: row for row in results if len(row) == 11 and row[1] == "defaults"}
    tuned = {row[0]: row for row in results if len(row) == 11 and row[1] == "tuned"}
    rivals = {row[0]: row for row in results if len(row) == 6 and row[0] in tuned}
    shown = [row for row in rows_of(text_of(README), "## What it does best") if row[0] in tuned]
    assert len(shown) == len(tuned) == 9
    for name, *errors, covered in shown:
        expected = [first[name][3], *tuned[name][3:5], *rivals[name][2:]]
        assert errors == [cell.split(" ")[0] for cell in expected], name
        assert covered == f"{first[name][8].split(' / ')[-1]} %", name


def test_the_best_models_of_the_readme_are_bold():
    lines = text_of(README)
    rows = [line.strip("|").split("|") for line in lines[lines.index("## What it does best") :].splitlines() if "**" in line]
    assert len(rows) == 9
    for _, *errors, _ in rows:
        values = [float(cell.strip(" *")) for cell in errors]
        assert ["**" in cell for cell in errors] == [value == min(values) for value in values]


def test_the_measured_coverage_is_that_of_the_results():
    """The tables of docs/uncertainty_results.md round those of experiments/results/."""
    page = text_of(ROOT / "docs" / "uncertainty_results.md")
    simulated = [row[1:5] for row in rows_of(page) if len(row) == 5][2:]
    wanted = ("paper, last iterate", "paper, averaged over 25", "published code, averaged over 25")
    wanted += ("paper's network, cross-fitted residuals", "default, last iterate", "default")
    measured = {row[0]: row[1:5] for row in reversed(rows_of(text_of(ROOT / "experiments" / "results" / "coverage.md")))}
    for shown, name in zip(simulated, wanted, strict=True):
        exact = [float(cell.split(" ")[0]) for cell in measured[name]]
        assert [float(cell) for cell in shown] == pytest.approx(exact, abs=0.051), name
    uci = rows_of(text_of(ROOT / "experiments" / "results" / "uci.md"))
    fixed = [row for row in uci if len(row) == 11 and row[1] == "fixed"]
    shown = [row for row in rows_of(page, "## UCI sets") if len(row) == 6][2:]
    assert sorted(" / ".join(row[1:4]) + row[4] for row in shown) == sorted(row[8] + row[9] for row in fixed)


# -- language ------------------------------------------------------------------------------------------------------------------

BANNED = {
    r"\bhonest\w*": "out-of-sample",
    r"\bmanners?\b": "conventions",
    r"\blook(?:ed|s|ing)? at\b": "used, examined",
    r"\bdear(?:er|est)?\b": "expensive",
    r"\bnobody\b|\banybody\b|\beverybody\b": "a name for those who are meant",
}


def prose_of(path):
    """Docstrings, comments and messages of a module, with line numbers; the whole text of other files."""
    if path.suffix != ".py":
        return list(enumerate(text_of(path).splitlines(), 1))
    kinds = (tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING))
    tokens = tokenize.generate_tokens(io.StringIO(text_of(path)).readline)
    return [
        (token.start[0] + k, line)
        for token in tokens
        if token.type in kinds
        for k, line in enumerate(token.string.splitlines())
    ]


@pytest.mark.parametrize("path", [*DOCUMENTS, *EXAMPLES, *SOURCES], ids=lambda path: str(path.relative_to(ROOT)))
def test_words_are_those_of_the_field(path):
    for number, line in prose_of(path):
        for pattern, better in BANNED.items():
            found = re.search(pattern, line, flags=re.IGNORECASE)
            assert not found, f"{path.name}:{number} says {found[0]!r}; better: {better}"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_descriptions_of_parameters_are_sentences(path):
    """A description that begins with "Of" is the rest of a sentence whose beginning the reader has to guess."""
    for number, line in prose_of(path):
        assert not re.match(r"\s+Of (?!the rows that)", line), f"{path.name}:{number}: {line.strip()}"
