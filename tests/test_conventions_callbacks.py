"""scikit-learn's conventions: callbacks (1.9 and later) follow the iterations of a training; earlier versions have none."""

import importlib.util
import pickle
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kstonet import KStoNetClassifier, KStoNetRegressor, KStoNetRegressorCV, StoNetClassifier, StoNetRegressor
from kstonet.estimators import callbacks

pytestmark = pytest.mark.usefixtures("few_folds", "few_steps")  # how good choices and intervals are is tested elsewhere

FAST = {"max_iter": 4, "n_average": 2, "n_imputation_steps": 5, "residuals": None, "random_state": 0}
KINDS = (KStoNetRegressor, KStoNetClassifier, StoNetRegressor, StoNetClassifier)
supported = pytest.mark.skipif(importlib.util.find_spec("sklearn.callback") is None, reason="scikit-learn before 1.9")


def data(kind):
    X, y = (load_diabetes if "Regressor" in kind.__name__ else load_iris)(return_X_y=True)
    return X[::3], y[::3]


class Recorder:
    """Every hook, in the order it is called."""

    max_propagation_depth = None

    def __init__(self, stop_after=None, interrupt_at=None):
        self.events, self.models, self.stop_after, self.interrupt_at = [], [], stop_after, interrupt_at

    def setup(self, estimator, context):
        self.events.append("setup")

    def teardown(self, estimator, context):
        self.events.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.events.append(f"begin {context.task_name}")
        if self.interrupt_at == sum(event == "begin iteration" for event in self.events):
            self.interrupt_at = None
            raise KeyboardInterrupt

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
        self.events.append(f"end {context.task_name}")
        if context.task_name == "iteration":
            self.models.append(fitted_estimator)
            return len(self.models) == self.stop_after
        return False


ITERATION = ["begin iteration", "end iteration"]


@supported
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("residuals", [None, "training"])
def test_the_iterations_are_tasks(kind, residuals):
    X, y = data(kind)
    recorder = Recorder()
    fixed = FAST | ({"tuning": "none"} if kind is KStoNetRegressor else {})
    settings = fixed | {"residuals": residuals}
    model = kind(**settings).set_callbacks(recorder).fit(X, y)
    intervals = [] if residuals is None else ["begin intervals", "end intervals"]
    assert recorder.events == ["setup", "begin fit", *(4 * ITERATION), *intervals, "end fit", "teardown"]
    np.testing.assert_array_equal(model.predict(X), kind(**settings).fit(X, y).predict(X))
    assert [seen.n_iter_ for seen in recorder.models] == [1, 2, 3, 4]
    for iterations, seen in enumerate(recorder.models, start=1):  # models of their own, which later iterations leave alone
        shorter = kind(**(fixed | {"max_iter": iterations})).fit(X, y)
        np.testing.assert_allclose(seen.predict(X), shorter.predict(X), rtol=1e-6)


@supported
def test_a_callback_can_stop_the_training():
    X, y = data(KStoNetRegressor)
    recorder = Recorder(stop_after=2)
    model = KStoNetRegressor(tuning="none", **FAST).set_callbacks(recorder).fit(X, y)
    assert model.n_iter_ == len(model.history_) == 2
    assert recorder.events[-2:] == ["end fit", "teardown"]


@supported
def test_an_interrupt_keeps_the_model_so_far():
    X, y = data(KStoNetRegressor)
    recorder = Recorder(interrupt_at=3)
    model = KStoNetRegressor(tuning="none", **(FAST | {"residuals": "training"})).set_callbacks(recorder).fit(X, y)
    assert model.n_iter_ == 2
    assert model.predict_interval(X).shape == (len(X), 2)
    assert recorder.events[-4:] == ["begin intervals", "end intervals", "end fit", "teardown"]
    with pytest.raises(KeyboardInterrupt):  # nothing is trained yet
        KStoNetRegressor(tuning="none", **FAST).set_callbacks(recorder := Recorder(interrupt_at=1)).fit(X, y)
    assert recorder.events[-1] == "teardown"


@supported
def test_a_failed_fit_tears_down():
    X, y = data(KStoNetRegressor)
    recorder = Recorder()
    with pytest.raises(ValueError, match="friction=7"):
        KStoNetRegressor(tuning="none", **FAST, friction=7).set_callbacks(recorder).fit(X, y)
    assert recorder.events == ["setup", "begin fit", "teardown"]


@supported
def test_scores_of_every_iteration():
    from sklearn.callback import ScoringMonitor

    X, y = data(KStoNetRegressor)
    frame, w = pd.DataFrame(X).add_prefix("x"), np.arange(len(X)) % 3
    monitor = ScoringMonitor(scoring="r2")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # such as one about the names of columns
        KStoNetRegressor(tuning="none", **FAST).set_callbacks(monitor).fit(frame, y, sample_weight=w)
    rows = {row["task_id_path"]: row["r2"] for row in monitor.get_logs().data}
    assert list(rows) == [(0,), (0, 0), (0, 1), (0, 2), (0, 3)]
    for i in range(4):
        model = KStoNetRegressor(tuning="none", **(FAST | {"max_iter": i + 1})).fit(frame, y, sample_weight=w)
        assert rows[0, i] == pytest.approx(r2_score(y, model.predict(frame), sample_weight=w), rel=1e-6)
    assert rows[(0,)] == pytest.approx(rows[0, 3])


@supported
def test_a_progress_bar(capsys):
    pytest.importorskip("rich")
    from sklearn.callback import ProgressBar

    X, y = data(KStoNetRegressor)
    KStoNetRegressor(tuning="none", **FAST).set_callbacks(ProgressBar()).fit(X, y)
    shown = capsys.readouterr().out
    assert "KStoNetRegressor - fit" in shown
    assert "100%" in shown


@supported
def test_callbacks_of_a_pipeline_and_of_a_grid_search_see_the_network():
    X, y = data(KStoNetRegressor)
    recorder = Recorder()
    make_pipeline(StandardScaler(), KStoNetRegressor(tuning="none", **FAST)).set_callbacks(recorder).fit(X, y)
    assert recorder.events.count("end iteration") == 4
    assert recorder.events.count("setup") == recorder.events.count("teardown") == 1
    recorder = Recorder()
    GridSearchCV(KStoNetRegressor(tuning="none", **FAST), {"C": [1, 10]}, cv=2).set_callbacks(recorder).fit(X, y)
    assert recorder.events.count("end iteration") == 5 * 4
    assert recorder.events.count("setup") == recorder.events.count("teardown") == 1


@supported
def test_the_trainings_of_a_search_are_not_the_users():
    X, y = data(KStoNetRegressor)
    recorder = Recorder()
    model = KStoNetRegressor(**FAST, C="tune").set_callbacks(recorder).fit(X, y)
    assert recorder.events == ["setup", "begin fit", *(4 * ITERATION), "end fit", "teardown"]
    assert model.tuned_
    recorder.events.clear()
    base = KStoNetRegressor(tuning="none", **FAST).set_callbacks(recorder)
    one = {"kernel": ["rbf"], "gamma": ["scale"], "length_scale": [None], "hidden_layer_sizes": [(3,)]}
    KStoNetRegressorCV(base, C=[1, 10], cv=2, **one).fit(X, y)
    assert recorder.events == ["setup", "begin fit", *(4 * ITERATION), "end fit", "teardown"]


@supported
def test_clones_and_pickles():
    X, y = data(KStoNetRegressor)
    model = KStoNetRegressor(tuning="none", **FAST).set_callbacks(Recorder()).fit(X, y)
    assert clone(model)._skl_callbacks == model._skl_callbacks
    assert not [name for name in vars(model) if "callback" in name and name not in ("callback", "_skl_callbacks")]
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))
    model.set_callbacks().fit(X, y)
    assert "_skl_callbacks" not in vars(model)


def test_versions_without_callbacks(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.callback", None)  # import raises
    spec = importlib.util.spec_from_file_location("before", callbacks.__file__)
    before = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(before)
    assert not hasattr(before.CallbackSupportMixin(), "set_callbacks")

    @before.tears_down_callbacks
    def fit(estimator):
        with before.fit_tasks(estimator, [[1.0]], [1.0], None) as observers:
            return observers

    assert fit(KStoNetRegressor(tuning="none")) == []
