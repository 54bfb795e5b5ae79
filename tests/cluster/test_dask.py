"""Training on a Dask cluster of real worker processes (make test-dask): the numbers are those of the local engine."""

import os
import pickle
import signal
import threading
import time

import numpy as np
import pytest

import kstonet
from kstonet import KStoNetClassifier, KStoNetRegressor
from kstonet.gram import Iterative, LowRank

da = pytest.importorskip("dask.array", reason="dask is an extra; make test-dask installs it")
distributed = pytest.importorskip("distributed")

from kstonet.dask import ClusterLostError, DaskKStoNetClassifier, DaskKStoNetRegressor, training  # noqa: E402
from kstonet.dask.dask_rows import ClusterRows  # noqa: E402
from kstonet.row_sums import RowNormals  # noqa: E402

RNG = np.random.default_rng(0)
N = 420
X = RNG.normal(size=(N, 3))
Y = np.sin(X[:, 0]) * X[:, 1] + 0.1 * RNG.normal(size=N)
LABELS = np.array(["low", "middle", "high"])[np.digitize(Y, [-0.3, 0.3])]
EVEN, UNEVEN = (140,) * 3, (30, 0, 390)
OPTIONS = {
    "tuning": "none", "loss": "squared", "C": 30.0, "solver": LowRank(rank=40, leaf_rows=0), "max_iter": 2, "n_average": 2,
    "hidden_layer_sizes": (4,), "random_state": 0,
}  # fmt: skip


def collections(chunks, *arrays):
    return [da.from_array(values, chunks=(chunks, *values.shape[1:])) for values in arrays]


def test_without_a_client():  # before there is one
    with pytest.raises(ValueError, match="there is no Dask client"):
        DaskKStoNetRegressor(**OPTIONS).fit(*collections(EVEN, X, Y))


@pytest.fixture(scope="module")
def cluster():
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def client(cluster):
    with distributed.Client(cluster) as client:
        yield client


@pytest.mark.parametrize("chunks", [EVEN, UNEVEN], ids=str)
def test_regression_is_that_of_the_local_engine(client, chunks):
    """Without noise in the imputation nothing is random but the start, which is the same; two targets, weights."""
    targets, weights = np.column_stack([Y, X[:, 2] - Y]), 1.0 + np.arange(N) % 3
    weights[::7] = 0.0
    options = OPTIONS | {"temperature": 0.0, "residuals": None}
    here = KStoNetRegressor(**options).fit(X, targets, weights)
    there = DaskKStoNetRegressor(**options).fit(*collections(chunks, X, targets, weights))
    np.testing.assert_allclose(there.get_combined_model().predict(X), here.predict(X), rtol=1e-6, atol=1e-6)
    assert [one["loss"] for one in there.history_] == pytest.approx([one["loss"] for one in here.history_], rel=1e-6)


def test_classification_is_that_of_the_local_engine(client):
    options = OPTIONS | {"temperature": 0.0, "hidden_layer_sizes": (3,)}
    here = KStoNetClassifier(**options).fit(X, LABELS)
    rows, labels = collections(UNEVEN, X, LABELS)
    there = DaskKStoNetClassifier(**options).fit(rows, labels)
    np.testing.assert_allclose(there.predict_proba(rows).compute(), here.predict_proba(X), atol=1e-6)
    assert (there.predict(rows).compute() == here.predict(X)).all()
    assert there.calibration_temperature_ == pytest.approx(here.calibration_temperature_, rel=1e-3)


def test_partitions_do_not_matter_and_predictions_are_lazy(client, tmp_path):
    """With the noise of the imputation, and intervals; the combined model is a local one in every respect."""
    one = DaskKStoNetRegressor(**OPTIONS).fit(*collections(EVEN, X, Y))
    rows, observed = collections(UNEVEN, X, Y)
    other = DaskKStoNetRegressor(**OPTIONS).fit(rows, observed)
    lazy, bounds = other.predict(rows), other.predict_interval(rows, coverage=0.9)
    assert lazy.chunks == rows.chunks[:1]
    assert bounds.shape == (N, 2)
    np.testing.assert_allclose(lazy.compute(), one.predict(X), rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(bounds.compute(), one.predict_interval(X, coverage=0.9), rtol=1e-6, atol=1e-6)
    inside = (bounds[:, 0] <= observed) & (observed <= bounds[:, 1])
    assert 0.8 < float(inside.mean().compute()) < 0.99
    model = other.get_combined_model()
    assert type(model) is KStoNetRegressor
    kstonet.save(model, tmp_path / "model.kstonet")
    loaded = kstonet.load(tmp_path / "model.kstonet")
    np.testing.assert_allclose(loaded.predict_interval(X, 0.9), bounds.compute())
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))
    assert "distributed" not in str(pickle.loads(pickle.dumps(other)).__dict__)  # the client stays behind


def test_data_frames_with_categories_and_missing_values(client):
    pandas, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    table = pandas.DataFrame({"x": X[:, 0], "side": np.where(X[:, 1] > 0, "left", "right"), "y": X[:, 0] * np.sign(X[:, 1])})
    table.loc[::20, "x"] = np.nan
    frame = dd.from_pandas(table, npartitions=3)
    model = DaskKStoNetRegressor(**OPTIONS | {"residuals": None, "max_iter": 4}).fit(frame[["x", "side"]], frame["y"])
    assert list(model.feature_names_in_) == ["x", "side"]
    predicted = model.predict(frame[["x", "side"]]).compute()
    np.testing.assert_allclose(predicted, model.get_combined_model().predict(table[["x", "side"]]))
    known = table["x"].notna()
    assert np.corrcoef(predicted[known], table["y"][known])[0, 1] > 0.95


def test_the_first_call_chooses_on_a_sample(client, monkeypatch):
    """Nothing as long as the data comes to the client: no array has more rows than the sample."""
    monkeypatch.setattr(training, "SAMPLE", 120)
    monkeypatch.setattr("kstonet.dask.estimators.SAMPLE", 120)
    longest = []
    original = ClusterRows.result

    def watched(self, future):
        found = original(self, future)
        longest.append(max((len(each) for each in arrays_in(found)), default=0))
        return found

    monkeypatch.setattr(ClusterRows, "result", watched)
    model = DaskKStoNetRegressor(random_state=0, max_iter=2, solver=LowRank(rank=40, leaf_rows=0))
    model.fit(*collections(EVEN, X, np.exp(Y)))
    assert max(longest) == 120
    assert "reason" in model.tuning_
    assert "target_transform" not in model.tuned_  # the target is learned as it is
    assert model.get_combined_model().score(X, np.exp(Y)) > 0.8


def arrays_in(value):
    if isinstance(value, tuple | list):
        for one in value:
            yield from arrays_in(one)
    elif isinstance(value, np.ndarray) and value.ndim:
        yield value


def test_a_killed_worker_changes_nothing(cluster, client, monkeypatch):
    rows = collections(EVEN, X, Y)
    expected = DaskKStoNetRegressor(**OPTIONS).fit(*rows).predict(X)
    killed = []

    def kill(self, *_):
        if not killed:
            killed.append(next(iter(cluster.workers.values())).pid)
            os.kill(killed[0], signal.SIGKILL)

    monkeypatch.setattr(training.ClusterTraining, "_record", kill)
    np.testing.assert_allclose(DaskKStoNetRegressor(**OPTIONS).fit(*rows).predict(X), expected, rtol=1e-8, atol=1e-8)
    assert killed


def test_trainings_at_once(client):
    rows = collections(EVEN, X, Y)
    models = [DaskKStoNetRegressor(**OPTIONS | {"residuals": None, "max_iter": 1, "random_state": seed}) for seed in (0, 1)]
    alone = [model.fit(*rows).predict(X) for model in models]

    def fit(model):
        model.client = client
        model.fit(*rows)

    threads = [threading.Thread(target=fit, args=(model,)) for model in models]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for model, expected in zip(models, alone, strict=True):
        np.testing.assert_allclose(model.predict(X), expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("what", ["cluster", "workers"])
def test_a_cluster_that_goes_away(monkeypatch, what):
    options = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": None, "processes": False}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as own:

        def leave(self, *_):
            cluster.close() if what == "cluster" else cluster.scale(0)

        monkeypatch.setattr(training.ClusterTraining, "_record", leave)
        model = DaskKStoNetRegressor(**OPTIONS)
        model.client, model.timeout = own, 3.0
        begin = time.monotonic()
        with pytest.raises(ClusterLostError, match="has gone, or has had no workers for 3 s"):
            model.fit(*collections(EVEN, X, Y))
        assert time.monotonic() - begin < 30
        assert not hasattr(model, "trained_")


def test_errors_name_the_remedy(client):
    rows, observed = collections(EVEN, X, Y)
    for options, words in [
        ({"loss": "epsilon_insensitive"}, "use loss='squared'"),
        ({"hidden_layer_sizes": (4, 2)}, "one hidden layer"),
        ({"device": "cuda"}, "use device=None"),
        ({"solver": "dense"}, "landmarks only"),
        ({"solver": Iterative(rank=10, leaf_rows=0)}, "landmarks only"),
        ({"solver": LowRank(rank=10, leaf_rows=5)}, "no leaves"),
        ({"checkpoint": "folder"}, "use checkpoint=None"),
        ({"target_transform": "log"}, "transform y"),
    ]:
        with pytest.raises(ValueError, match=words):
            DaskKStoNetRegressor(**OPTIONS | options).fit(rows, observed)
    with pytest.raises(TypeError, match="must be Dask arrays or data frames"):
        DaskKStoNetRegressor(**OPTIONS).fit(X, Y)
    with pytest.raises(ValueError, match="no rows of positive weight"):
        DaskKStoNetRegressor(**OPTIONS).fit(rows, observed, 0.0 * observed)
    with pytest.raises(ValueError, match="one class only"):
        DaskKStoNetClassifier(**OPTIONS).fit(rows, 0.0 * observed)
    with pytest.raises(ValueError, match=r"NaN|not finite"):
        DaskKStoNetRegressor(**OPTIONS).fit(rows, da.where(observed > 1.0, np.nan, observed))


def test_normals_belong_to_rows():
    """Any part of the rows draws the same numbers, which are standard normal and independent of each other."""
    whole = RowNormals(3, 0, 5000)
    draws = np.stack([whole.standard_normal((5000, 3)) for _ in range(2)])
    part = RowNormals(3, 1001, 5000)
    for draw in draws:
        np.testing.assert_array_equal(part.standard_normal((57, 3)), draw[1001:1058])
    assert abs(draws.mean()) < 0.03
    assert abs(draws.std() - 1.0) < 0.03
    correlation = np.corrcoef(draws.transpose(0, 2, 1).reshape(6, -1)) - np.eye(6)
    assert np.abs(correlation).max() < 0.06


def test_a_result_that_comes_as_the_wait_ends():
    """A wait that times out in the moment in which the task ends waits again; an error of the task itself is raised."""

    class Late:
        status = "finished"
        calls = 0

        def result(self, timeout):
            self.calls += 1
            if self.calls == 1 or self.status == "error":
                raise TimeoutError
            return 7

    class Client:
        status = "running"

        def nthreads(self):
            return {"worker": 1}

    rows, late = ClusterRows(Client(), 1.0), Late()
    assert rows.result(late) == 7
    late.status = "error"
    with pytest.raises(TimeoutError):
        rows.result(late)
