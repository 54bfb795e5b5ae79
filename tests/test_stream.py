"""partial_fit: a stream ends where a training on all rows ends, and what it says of new rows is calibrated."""

import pickle

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge

import kstonet
from kstonet import KStoNetRegressor
from kstonet.gram import LowRank

pytestmark = pytest.mark.usefixtures("few_folds")  # how good intervals are is tested elsewhere

RNG = np.random.default_rng(0)
N, BATCH = 2400, 200
X = RNG.uniform(-2, 2, size=(N, 2))
MEAN = np.sin(2 * X[:, 0]) + X[:, 1]
Y = MEAN + 0.2 * RNG.normal(size=N)
NEW = RNG.uniform(-2, 2, size=(400, 2))
TRUE = np.sin(2 * NEW[:, 0]) + NEW[:, 1]
OPTIONS = {
    "tuning": "none", "loss": "squared", "C": 1.0, "gamma": 1.0, "hidden_layer_sizes": (6,), "max_iter": 10, "n_average": 8,
    "solver": LowRank(rank=60, leaf_rows=0, tolerance=0.0), "random_state": 0,
}  # fmt: skip


def streamed(model, X=X, Y=Y, epochs=1):
    for _ in range(epochs):
        for begin in range(0, len(X), BATCH):
            model.partial_fit(X[begin : begin + BATCH], Y[begin : begin + BATCH])
    return model


def distance(one, other):
    return float(np.sqrt(np.mean((one - other) ** 2)))


def test_one_batch_is_a_fit():
    """Without noise in the imputation nothing is random but the start, which is the same.

    Of two targets, that is: a fit of one starts as the mean of its regressions, and comes to about the same end.
    """
    options = OPTIONS | {"temperature": 0.0, "residuals": None}
    for targets, atol in ((np.column_stack([Y, X[:, 0] - Y]), 1e-6), (Y, 0.04)):
        one, whole = KStoNetRegressor(**options).partial_fit(X, targets), KStoNetRegressor(**options).fit(X, targets)
        np.testing.assert_allclose(one.predict(NEW), whole.predict(NEW), rtol=1e-6, atol=atol)


def test_a_stream_comes_to_the_solution_of_all_rows():
    """The error against the truth falls from that of the first batch to that of a training on all rows."""
    options = OPTIONS | {"residuals": None}
    model = KStoNetRegressor(**options)
    first = distance(model.partial_fit(X[:BATCH], Y[:BATCH]).predict(NEW), TRUE)
    whole = distance(KStoNetRegressor(**options).fit(X, Y).predict(NEW), TRUE)
    once = distance(streamed(model, X[BATCH:], Y[BATCH:]).predict(NEW), TRUE)
    thrice = distance(streamed(model, epochs=2).predict(NEW), TRUE)
    assert once < 0.6 * first
    assert once < 1.5 * whole
    assert thrice < 1.1 * whole


def test_a_known_optimum():
    """Linear rows and a linear network: many passes come to the least-squares line, nearer and nearer."""
    slopes = np.array([1.0, -2.0])
    y = X @ slopes + 0.5 * np.random.default_rng(1).normal(size=N)
    design = np.column_stack([np.ones(N), X])
    best = np.column_stack([np.ones(len(NEW)), NEW]) @ np.linalg.lstsq(design, y, rcond=None)[0]
    options = OPTIONS | {
        "kernel": "linear",
        "activation": "identity",
        "alpha": 0.0,
        "penalty": "none",
        "C": 100.0,
        "residuals": None,
    }
    model = KStoNetRegressor(**options)
    distances = []
    for _ in range(3):
        distances.append(distance(streamed(model, Y=y).predict(NEW), best))
    assert distances[-1] < 0.02
    assert distances[-1] < distances[0]


def test_intervals_from_batches_that_were_predicted_first():
    model = streamed(KStoNetRegressor(**OPTIONS))
    low, high = model.predict_interval(NEW, coverage=0.9).T
    observed = TRUE + 0.2 * np.random.default_rng(2).normal(size=len(NEW))
    assert 0.84 < np.mean((low <= observed) & (observed <= high)) < 0.96
    again = pickle.loads(pickle.dumps(model))  # a stored stream goes on
    for one in (model, again):
        one.partial_fit(X[:BATCH], Y[:BATCH])
    np.testing.assert_array_equal(again.predict_interval(NEW), model.predict_interval(NEW))


def test_the_first_call_weights_and_a_fit_between():
    weights = np.where(np.arange(N) % 4 == 0, 0.0, 1.0)
    model = KStoNetRegressor(random_state=0, max_iter=4, solver=LowRank(rank=60, leaf_rows=0))
    for begin in range(0, 4 * BATCH, BATCH):
        rows = slice(begin, begin + BATCH)
        model.partial_fit(X[rows], np.where(weights[rows] == 0.0, 1e3, Y[rows]), weights[rows])
    ridge = KernelRidge(kernel="rbf", gamma=1.0, alpha=1.0).fit(X[: 4 * BATCH], Y[: 4 * BATCH])
    assert distance(model.predict(NEW), TRUE) < 2.0 * distance(ridge.predict(NEW), TRUE)
    assert model.tuned_["loss"] == "squared"
    model.fit(X[:BATCH], Y[:BATCH])
    fitted = model.predict(NEW)
    with pytest.warns(UserWarning, match="partial_fit cannot go on: the model was fitted or loaded"):
        model.partial_fit(X[:BATCH], Y[:BATCH])  # a new stream, not one that goes on from before the fit
    assert model.history_[-1]["rows"] == BATCH
    assert distance(model.predict(NEW), fitted) < 0.2


def test_a_loaded_model_says_that_its_stream_is_lost(tmp_path):
    model = streamed(KStoNetRegressor(**OPTIONS))
    with pytest.warns(UserWarning, match="not stored: _stream"):
        kstonet.save(model, tmp_path / "m.kstonet")
    loaded = kstonet.load(tmp_path / "m.kstonet")
    with pytest.warns(UserWarning, match="partial_fit cannot go on: the model was fitted or loaded"):
        loaded.partial_fit(X[:BATCH], Y[:BATCH])
    loaded.partial_fit(X[:BATCH], Y[:BATCH])
    assert loaded.history_[-1]["rows"] == 2 * BATCH


def test_what_a_stream_cannot_do():
    with pytest.raises(ValueError, match=r"checkpoint='folder' .* Pickle the model between two batches"):
        KStoNetRegressor(**OPTIONS, checkpoint="folder").partial_fit(X[:BATCH], Y[:BATCH])
    with pytest.raises(ValueError, match="use loss='squared'"):
        KStoNetRegressor(tuning="none").partial_fit(X[:BATCH], Y[:BATCH])
    with pytest.raises(ValueError, match="one hidden layer"):
        KStoNetRegressor(**OPTIONS | {"hidden_layer_sizes": (4, 2)}).partial_fit(X[:BATCH], Y[:BATCH])
    model = KStoNetRegressor(**OPTIONS).partial_fit(X[:BATCH], Y[:BATCH])
    with pytest.raises(ValueError, match="3 features"):
        model.partial_fit(np.zeros((5, 3)), np.zeros(5))
    with pytest.raises(ValueError, match="intervals"):
        model.predict_interval(NEW)  # nothing was predicted before it was learnt
