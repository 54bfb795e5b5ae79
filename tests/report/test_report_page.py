"""Whole pages: complete, self-contained, safe, the same every time."""

import json
import pickle
import re
import time
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from kstonet import KStoNetClassifier, KStoNetRegressor, StoNetClassifier, StoNetRegressor
from kstonet.report import build_report, write_report

FAST = {"max_iter": 4, "n_average": 2, "n_imputation_steps": 3, "random_state": 0}
VOID = {"meta", "input", "link"}
HOSTILE = '</script><script>window.hacked=1</script><img src=x onerror="window.hacked=1">&amp;"\'\u2028'


class Page(HTMLParser):
    """A page as a browser reads it: balanced elements, texts, charts."""

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.open, self.texts, self.charts, self.tags, self.ids, self.links = [], [], [], [], [], []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.tags.append(tag)
        self.ids += [given["id"]] if "id" in given else []
        self.links += [value for key, value in attrs if key in ("src", "href")]
        assert not any(key.startswith("on") or key == "style" for key in given)
        if tag not in VOID:
            self.open.append((tag, given))

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag

    def handle_data(self, data):
        tag, given = self.open[-1] if self.open else ("", {})
        if tag == "script" and given.get("type") == "application/json":
            self.charts.append(json.loads(data))
        elif tag not in ("script", "style"):
            self.texts.append(data)

    @property
    def text(self):
        return " ".join(self.texts)


def check(html):
    page = Page(html)
    assert len(page.ids) == len(set(page.ids))
    assert {link for link in page.links if link[1:] not in page.ids} == {"data:,"}
    assert "nan" not in page.text.split()
    assert page.charts
    for variants in page.charts:
        for chart in variants:
            assert chart["alt"].endswith(".")
            assert any(len(mark.get("x", mark.get("x0", mark.get("y")))) for mark in chart["marks"] if mark["kind"] != "span")
    return page


@pytest.fixture(scope="module")
def mixed_page(mixed):
    model, encode, (X, y), (X_test, y_test) = mixed
    return build_report(model, X_test, y_test, encode=encode, X_train=X, y_train=y, title="Prices", dated=False)


def test_a_regression_has_all_its_sections(mixed_page):
    page = check(mixed_page)
    for said in (
        "Prices",
        "judged on 120 rows it has not seen",
        "linear (ridge)",
        "covered",
        "interval score",
        "Variance by source",
        "between iterations",
        "The hardest rows",
        "std. residual",
        "Permutation importance",
        "Support vectors of a unit",
        "All parameters",
        "scikit-learn",
        "fitted on the training rows",
    ):
        assert said in page.text, said
    titles = {chart["x"]["label"] for variants in page.charts for chart in variants}
    assert {"nominal", "iteration", "predicted price", "kind", "gaps", "half the width of the 95 % interval"} <= titles


def test_a_classification_has_all_its_sections(classes):
    model, X, y, X_test, y_test = classes
    page = check(build_report(model, X_test, y_test, X_train=X, y_train=y))
    for said in ("accuracy", "Confusion matrix", "precision", "Reliability", "calibration error", "p(observed)", "log-odds"):
        assert said in page.text, said
    assert page.text.count("probability of") >= 3  # one choice for every class
    assert {len(variants) for variants in page.charts} == {1, 3}


def test_the_confusion_matrix_counts(classes):
    model, _, _, X, y = classes
    html = build_report(model, X, y)
    cells = re.findall(r'<td class="number heat-\d+" title="[^"]*">([\d,]+)</td>', html)
    guessed = model.predict(X)
    expected = [np.sum((y == a) & (guessed == b)) for a in model.classes_ for b in model.classes_]
    assert [int(cell.replace(",", "")) for cell in cells] == expected


def test_the_same_model_and_data_give_the_same_page(mixed, mixed_page):
    model, encode, (X, y), (X_test, y_test) = mixed
    again = build_report(model, X_test, y_test, encode=encode, X_train=X, y_train=y, title="Prices", dated=False)
    assert again == mixed_page
    dated = build_report(model, X_test, y_test, encode=encode, X_train=X, y_train=y, title="Prices")
    assert re.sub(r" · \d{4}-\d\d-\d\d", "", dated, count=1) == mixed_page


def test_the_page_asks_for_nothing(mixed_page):
    assert set(re.findall(r"https?://[\w./]+", mixed_page)) == {"http://www.w3.org/2000/svg"}  # a name, not an address
    assert "url(" not in mixed_page
    assert "@import" not in mixed_page
    assert "default-src &#x27;none&#x27;" in mixed_page


def test_hostile_names_stay_text(tmp_path):
    rng = np.random.default_rng(0)
    names = [HOSTILE + "a", HOSTILE + "b", "plain"]
    X = pd.DataFrame(rng.normal(size=(60, 3)), columns=names, index=[f"{HOSTILE}{i}" for i in range(60)])
    X["plain"] = np.where(X["plain"] > 0, HOSTILE, "<b>other</b>")
    y = pd.Series(np.where(X[names[0]] > 0, f"{HOSTILE}yes", "no"), name=f"{HOSTILE}label", index=X.index)

    def encode(frame):
        return frame.assign(plain=(frame["plain"] == HOSTILE).astype(float)).to_numpy(dtype=float)

    classifier = KStoNetClassifier(tuning="none", **FAST).fit(encode(X), y)
    regressor = KStoNetRegressor(tuning="none", **FAST).fit(encode(X), X[names[0]])
    target = X[names[0]].rename(HOSTILE)
    for model, truth in ((classifier, y), (regressor, target)):
        path = tmp_path / "hostile.html"
        write_report(model, X, truth, path, encode=encode, title=HOSTILE)
        html = path.read_text(encoding="utf-8")
        page = check(html)
        assert page.tags.count("script") == len(page.charts) + 1
        assert "img" not in page.tags
        assert "b" in page.tags
        assert HOSTILE in page.texts  # as the heading, letter by letter
        assert "<img" not in html
        assert "<b>other" not in html
        assert html.count("<script>") == 1
        assert HOSTILE + "a" in {chart["x"]["label"] for variants in page.charts for chart in variants}


def two_classes(X, y):
    return np.where(y > np.median(y), "high", "low")


@pytest.mark.parametrize(
    ("make", "change", "said"),
    [
        (lambda: StoNetRegressor(**FAST), None, "Variance by source"),
        (lambda: StoNetClassifier(**FAST), two_classes, "The classes one by one"),
        (lambda: KStoNetClassifier(tuning="none", residuals=None, **FAST), two_classes, "No intervals"),
        (lambda: KStoNetRegressor(tuning="none", residuals=None, **FAST), None, "without intervals"),
        (
            lambda: KStoNetRegressor((4, 2), tuning="none", residuals="training", **FAST),
            None,
            "3 inputs – 4 – 2 hidden – 1 target",
        ),
        (
            lambda: KStoNetRegressor(tuning="none", C=[1, 2, 3, 4, 5], gamma=[0.1] * 4 + [0.3], **FAST),
            None,
            "RBF, gamma 0.1; RBF, gamma 0.3",
        ),
        (
            lambda: KStoNetRegressor(tuning="none", callback=print, random_state=np.random.RandomState(0), max_iter=2),
            None,
            "print(…)",
        ),
    ],
)
def test_all_kinds_of_models(make, change, said, numeric, capsys):
    _, X, y, X_test, y_test = numeric
    if change:
        y, y_test = change(X, y), change(X_test, y_test)
    model = make().fit(X, y)
    page = check(build_report(model, X_test, y_test))
    assert said in page.text
    assert "0x" not in page.text


def test_one_of_several_targets(numeric):
    _, X, y, X_test, y_test = numeric
    targets = pd.DataFrame({"first": y, "second": -10.0 * y})
    model = KStoNetRegressor(tuning="none", **FAST).fit(X, targets)
    given = pd.DataFrame({"first": y_test, "second": -10.0 * y_test})
    page = check(build_report(model, X_test, given, X_train=X, y_train=targets, target=1))
    assert "predicted second" in {chart["x"]["label"] for variants in page.charts for chart in variants}
    assert "K-StoNet for second" in page.text


def test_unbounded_intervals_and_forgotten_training_rows(numeric):
    _, X, y, X_test, y_test = numeric
    model = KStoNetRegressor(tuning="none", **FAST).fit(X, y).calibrate(X_test[:12], y_test[:12])
    page = check(build_report(pickle.loads(pickle.dumps(model)), X_test[12:], y_test[12:]))
    assert "Unbounded intervals" in page.text
    assert "∞" in page.text
    assert "The training rows are not known" in page.text
    assert "Trained on not known" in page.text


def test_constant_columns_and_targets(numeric):
    _, X, y, X_test, _ = numeric
    X, X_test = X.copy(), X_test.copy()
    X[:, 2] = X_test[:, 2] = 1.0
    check(build_report(KStoNetRegressor(tuning="none", **FAST).fit(X, y), X_test, np.full(len(X_test), 0.5)))


def test_ten_thousand_rows_stay_small_and_quick():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(10_000, 6))
    y = X[:, 0] + rng.normal(size=10_000)
    model = KStoNetRegressor(tuning="none", **FAST).fit(X[:300], y[:300])
    started = time.process_time()
    html = build_report(model, X, y, X_train=X[:300], y_train=y[:300])
    assert time.process_time() - started < 30
    assert len(html.encode()) < 600_000
    assert "600 of 10,000 rows are drawn" in html
    assert "1,000 of 10,000 rows, chosen at random" in html


def test_chosen_values_are_told(numeric):
    _, X, y, X_test, y_test = numeric
    model = KStoNetRegressor(tuning="none", C=3, hidden_layer_sizes=(4,), **FAST).fit(X, y)
    model.set_params(C="tune", hidden_layer_sizes="tune")  # as after a search
    choice = {"reason": "the best of two", "table": []}
    model.trained_ = replace(model.trained_, chosen={"C": 3.0, "hidden_layer_sizes": (4,)}, choice=choice)
    page = check(build_report(model, X_test, y_test))
    for said in (
        "'tune', chosen: 3",
        "'tune', chosen: (4,)",
        "C = 3, ε = 0.01",
        "3 inputs – 4 hidden – 1 target",
        "the best of two.",
    ):
        assert said in page.text, said


def test_the_model_of_a_first_call(numeric):
    """With a squared loss every row is a support vector, and C is none of an SVR's."""
    _, X, y, X_test, y_test = numeric
    model = KStoNetRegressor(random_state=0, residuals="training").fit(X, y)
    page = check(build_report(model, X_test, y_test))
    for said in ("all training rows (squared loss)", "None, chosen: squared", "C = 10, ε = 0.01", model.tuning_["reason"]):
        assert said in page.text, said
