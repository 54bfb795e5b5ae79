"""scikit-learn's conventions and settings: diagrams with links, frames from transform, verbosity, input checks."""

import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_html_repr

import kstonet
from kstonet import (
    KStoNetClassifier,
    KStoNetClassifierCV,
    KStoNetRegressor,
    KStoNetRegressorCV,
    MultiTargetSVR,
    StoNetClassifier,
    StoNetRegressor,
)
from kstonet.estimators import links
from kstonet.gram.blocks import row_blocks

FAST = {"max_iter": 2, "n_average": 1, "n_imputation_steps": 5, "residuals": None, "random_state": 0}
ONE = {"kernel": ["rbf"], "gamma": ["scale"], "length_scale": [None], "C": [10], "hidden_layer_sizes": [(3,)], "cv": 2}
TRANSFORMERS = [
    KStoNetRegressor(tuning="none", **FAST),
    KStoNetClassifier(tuning="none", **FAST),
    StoNetRegressor(**FAST),
    StoNetClassifier(**FAST),
    KStoNetRegressorCV(KStoNetRegressor(tuning="none", **FAST), **ONE),
    KStoNetClassifierCV(KStoNetClassifier(tuning="none", **FAST), **ONE),
]
ESTIMATORS = [*TRANSFORMERS, MultiTargetSVR()]
X, Y = load_iris(return_X_y=True)
ADDRESS = "https://docs.example.org/kstonet"


def names(estimator):
    return type(estimator).__name__


each_estimator = pytest.mark.parametrize("estimator", ESTIMATORS, ids=names)
each_transformer = pytest.mark.parametrize("estimator", TRANSFORMERS, ids=names)


class Metadata:
    def __init__(self, urls):
        self.urls = urls

    def get_all(self, name):
        assert name == "Project-URL"
        return self.urls


@pytest.fixture
def published(monkeypatch):
    """The package as it is installed once the project names its pages."""
    urls = ["Changelog, https://elsewhere.example.org", f"Documentation, {ADDRESS}/"]
    monkeypatch.setattr(links, "metadata", lambda name: Metadata(urls))
    links.documentation_url.cache_clear()
    yield
    links.documentation_url.cache_clear()


# -- the diagram -------------------------------------------------------------------------------------------------------------


@each_estimator
def test_the_diagram_links_to_the_page_of_the_estimator(published, estimator):
    page = f"{ADDRESS}/generated/api/kstonet.{names(estimator)}.html"
    fitted = sklearn.clone(estimator).fit(X, Y)
    for drawn in (estimator, fitted, make_pipeline(StandardScaler(), fitted)):
        assert f'href="{page}"' in estimator_html_repr(drawn)
    listed = (Path(__file__).parents[1] / "docs" / "api.md").read_text(encoding="utf-8")
    section = re.search(r"currentmodule:: kstonet\n\n.. autosummary::\n   :toctree: generated/api\n[^`]*", listed)
    assert f"   {names(estimator)}\n" in section[0]


def unnamed(name):
    return Metadata(None)


def missing(name):
    raise PackageNotFoundError(name)


@pytest.mark.parametrize("metadata", [unnamed, missing])
def test_there_is_no_link_where_the_address_is_not_known(published, monkeypatch, metadata):
    monkeypatch.setattr(links, "metadata", metadata)
    assert KStoNetRegressor(tuning="none")._get_doc_link() == ""
    assert "href" not in estimator_html_repr(KStoNetRegressor(tuning="none", **FAST).fit(X, Y))


def test_estimators_of_others_do_not_link_to_these_pages(published):
    class Mine(KStoNetRegressor):
        pass

    assert Mine()._get_doc_link() == ""


@each_estimator
def test_every_parameter_is_described_alone(estimator):
    """The diagram shows the entry of a parameter beside its value; it finds it by its name."""
    for name in estimator.get_params(deep=False):
        assert re.search(rf"^    {name} : .+\n        \S", type(estimator).__doc__, re.MULTILINE), name


# -- set_config --------------------------------------------------------------------------------------------------------------


@each_transformer
@pytest.mark.parametrize(("library", "frame"), [("pandas", pd.DataFrame), ("polars", pl.DataFrame)])
def test_transform_gives_the_frames_asked_for(estimator, library, frame):
    estimator = sklearn.clone(estimator).fit(X, Y)
    plain = estimator.transform(X)
    assert isinstance(plain, np.ndarray)
    with sklearn.config_context(transform_output=library):
        asked_of_all = estimator.transform(X)
    estimator.set_output(transform=library)
    for out in (asked_of_all, estimator.transform(X), estimator.fit_transform(X, Y)):
        assert isinstance(out, frame)
        assert list(out.columns) == list(estimator.get_feature_names_out())
        np.testing.assert_array_equal(out.to_numpy(), plain)


def test_frames_keep_their_index():
    frame = pd.DataFrame(X, columns=list("abcd"), index=np.arange(len(X)) + 1000)
    out = KStoNetRegressor(tuning="none", **FAST).set_output(transform="pandas").fit_transform(frame, Y)
    assert out.index.equals(frame.index)


@each_estimator
def test_what_is_printed_and_drawn_is_a_setting(estimator):
    default = type(estimator)()
    assert repr(default) == f"{names(estimator)}()"
    with sklearn.config_context(print_changed_only=False):
        assert all(f"{name}=" in repr(default).replace("\n", "") for name in list(default.get_params())[:5])
    assert "text/html" in default._repr_mimebundle_()
    with sklearn.config_context(display="text"):
        assert list(default._repr_mimebundle_()) == ["text/plain"]


@each_estimator
def test_values_are_not_searched_for_infinity_where_they_are_said_to_be_finite(estimator):
    fitted = sklearn.clone(estimator).fit(X, Y)
    endless = X.copy()
    endless[0, 0] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        fitted.predict(endless)
    with sklearn.config_context(assume_finite=True), np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(fitted.predict(endless)[1:], fitted.predict(X)[1:])


# -- errors ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "values"),
    {
        "hidden_layer_sizes": [np.nan, [[3]], (5, "a")],
        "C": [[1, -2], "a"],
        "epsilon": ["a", -1],
        "kernel": ["rfb"],
        "gamma": [-1.0],
        "svr_tol": ["a", None, 0],
        "max_iter": ["a", 0, 1.5, np.inf, np.nan],
        "n_average": ["a", 0],
        "n_imputation_steps": ["3", None, np.nan],
        "n_iter_no_change": [None, 0],
        "tol": ["a", -1, np.nan],
        "friction": ["a", None, 2],
        "temperature": ["a", None, -1],
        "step_size": ["a", None, 0, []],
        "noise_variance": ["a", None, 0],
        "alpha": ["a", None, -1],
        "sampler": ["a", None, []],
        "residuals": ["a", []],
        "loss": ["a", "Squared", []],
        "upper_layer": ["a", None, []],
        "solver": ["a", None],
        "max_memory": ["a", 0],
        "callback": [5],
        "verbose": ["a", None, -1],
    }.items(),
)
def test_a_wrong_value_is_named_with_its_parameter(name, values):
    for value in values:
        with pytest.raises(ValueError, match=re.escape(f"{name}={value!r}")):
            KStoNetRegressor(tuning="none", **(FAST | {name: value})).fit(X, Y)


def test_weights_that_are_all_zero_are_refused():
    for estimator in ESTIMATORS:
        with pytest.raises(ValueError, match=r"sample_weight is zero everywhere; at least one"):
            sklearn.clone(estimator).fit(X, Y, sample_weight=np.zeros(len(X)))


def test_the_library_leaves_tracebacks_alone():
    code = (
        "import sys, traceback\nbefore = sys.excepthook\nimport kstonet, kstonet.cli\n"
        "assert sys.excepthook is before is sys.__excepthook__\nassert 'rich.traceback' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_tags():
    for estimator in ESTIMATORS:
        tags = sklearn.utils.get_tags(estimator)
        regressor = "Regressor" in names(estimator) or isinstance(estimator, MultiTargetSVR)
        assert tags.estimator_type == ("regressor" if regressor else "classifier")
        assert tags.target_tags.multi_output == regressor
        assert (tags.transformer_tags is None) == isinstance(estimator, MultiTargetSVR)
        assert not tags.input_tags.pairwise
        assert tags.input_tags.sparse
        assert tags.input_tags.allow_nan
        assert tags.target_tags.required
    assert {names(estimator) for estimator in ESTIMATORS} <= set(kstonet.__all__)
    for pairwise in (KStoNetRegressor(tuning="none", kernel="precomputed"), KStoNetRegressorCV(kernel=["precomputed"])):
        assert sklearn.utils.get_tags(pairwise).input_tags.pairwise


def test_working_memory_bounds_the_blocks_of_a_prediction():
    assert len(list(row_blocks(10_000, 1_000))) == 2
    with sklearn.config_context(working_memory=1):
        blocks = list(row_blocks(10_000, 1_000))
        assert max(block.stop - block.start for block in blocks) * 1_000 * 8 <= 2**20
    assert blocks[-1].stop == 10_000
