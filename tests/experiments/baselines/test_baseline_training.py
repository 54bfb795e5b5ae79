"""A run of training: seeds, warm starts, history, early stopping, interrupts, divergence, bad arguments."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.preprocessing import StandardScaler

from experiments.baselines import DNNClassifier, DNNRegressor, KernelNetworkClassifier, KernelNetworkRegressor
from experiments.baselines.optimizers import Adam

REGRESSORS = [DNNRegressor, KernelNetworkRegressor]
CLASSIFIERS = [DNNClassifier, KernelNetworkClassifier]
FAST = {"max_epochs": 30, "learning_rate": 0.03, "batch_size": 20, "random_state": 0}


@pytest.fixture(scope="module")
def diabetes():
    X, y = load_diabetes(return_X_y=True)
    return StandardScaler().fit_transform(X), (y - y.mean()) / y.std()


@pytest.mark.parametrize("cls", REGRESSORS + CLASSIFIERS)
def test_same_seed_same_result(cls):
    X, y = load_iris(return_X_y=True)
    first, again = (cls(dropout=0.1, mc_samples=10, **FAST).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(first.predict(X), again.predict(X))
    for one, other in zip(first.coefs_, again.coefs_, strict=True):
        np.testing.assert_array_equal(one, other)
    other = clone(first).set_params(random_state=1).fit(X, y)
    assert not np.array_equal(first.coefs_[0], other.coefs_[0])


@pytest.mark.parametrize("cls", REGRESSORS)
@pytest.mark.parametrize("solver", ["momentum", "adam"])
def test_warm_start_goes_on(cls, solver, diabetes):
    X, y = diabetes
    settings = FAST | {"solver": solver, "max_epochs": 6, "learning_rate": 0.005, "alpha": 1e-3}
    once = cls(**settings).fit(X, y)
    half = cls(**(settings | {"max_epochs": 3}), warm_start=True).fit(X, y)
    stored = pickle.loads(pickle.dumps(half))
    for twice in (half.fit(X, y), stored.fit(X, y)):
        assert twice.n_iter_ == len(twice.history_) == 6
        assert [record["epoch"] for record in twice.history_] == [1, 2, 3, 4, 5, 6]
        np.testing.assert_allclose(twice.predict(X), once.predict(X))
    assert half.set_params(hidden_layer_sizes=(3,)).fit(X, y).n_iter_ == 3  # another network: afresh
    if cls is KernelNetworkRegressor:
        assert half.fit(X[:-1], y[:-1]).n_iter_ == 3
        assert half.set_params(gamma=0.3).fit(X[:-1], y[:-1]).n_iter_ == 3


@pytest.mark.parametrize("cls", REGRESSORS + CLASSIFIERS)
def test_history_and_validation(cls):
    X, y = load_iris(return_X_y=True)
    seen = []
    model = cls(callback=seen.append, **FAST).fit(X[::2], y[::2], X_val=X[1::2], y_val=y[1::2])
    measure = "mse" if cls in REGRESSORS else "accuracy"
    assert list(model.history_[0]) == ["epoch", "loss", "penalty", measure, "val_loss", f"val_{measure}", "seconds"]
    assert len(seen) == len(model.history_) == model.n_iter_ == model.best_epoch_ == FAST["max_epochs"]
    assert [state.loss for state in seen] == [record["loss"] for record in model.history_]
    assert model.history_[-1]["loss"] < 0.5 * model.history_[0]["loss"]
    wrong = model.predict(X[1::2]) - y[1::2]
    score = (wrong**2).mean() if measure == "mse" else (wrong == 0).mean()
    assert model.history_[-1][f"val_{measure}"] == pytest.approx(score)
    # Looking at validation rows changes nothing in training.
    np.testing.assert_array_equal(cls(**FAST).fit(X[::2], y[::2]).coefs_[0], model.coefs_[0])


def test_early_stopping_keeps_the_best_epoch():
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, size=(60, 1))
    y = np.sin(X[:, 0]) + rng.normal(scale=0.5, size=60)
    model = DNNRegressor((50, 50), tol=0.0, n_iter_no_change=15, max_epochs=500, learning_rate=0.02, random_state=0)
    model.fit(X[:30], y[:30], X_val=X[30:], y_val=y[30:])
    losses = [record["val_loss"] for record in model.history_]
    assert model.n_iter_ < 500
    assert model.best_epoch_ == 1 + np.argmin(losses) == model.n_iter_ - 15
    assert np.mean((model.predict(X[30:]) - y[30:]) ** 2) == pytest.approx(min(record["val_mse"] for record in model.history_))
    # Without validation rows the training objective decides when to stop, and the last epoch is kept.
    model.set_params(tol=0.05).fit(X, y)
    assert model.best_epoch_ == model.n_iter_ < 500


def test_interrupt_between_epochs_keeps_the_model(diabetes):
    X, y = diabetes

    def stop(state):
        if state.epoch == 3:
            raise KeyboardInterrupt

    model = DNNRegressor(**(FAST | {"callback": stop})).fit(X, y)
    assert model.n_iter_ == 3
    np.testing.assert_array_equal(model.predict(X), DNNRegressor(**(FAST | {"max_epochs": 3})).fit(X, y).predict(X))


def test_interrupt_within_an_epoch_keeps_the_last_whole_one(diabetes, monkeypatch):
    X, y = diabetes
    expected = DNNRegressor(**(FAST | {"max_epochs": 2})).fit(X, y).predict(X)
    step, calls = Adam.step, []

    def interrupted(self, theta, gradient):
        calls.append(1)
        if len(calls) == limit:
            theta[:] = np.nan  # caught in the middle of a step
            raise KeyboardInterrupt
        step(self, theta, gradient)

    monkeypatch.setattr(Adam, "step", interrupted)
    limit = 2 * 23 + 5  # 442 rows in batches of 20: 23 steps an epoch
    model = DNNRegressor(**FAST).fit(X, y)
    assert model.n_iter_ == 2
    np.testing.assert_array_equal(model.predict(X), expected)
    calls.clear()
    limit = 5
    with pytest.raises(KeyboardInterrupt):  # nothing to keep
        DNNRegressor(**FAST).fit(X, y)


def test_verbose_prints_every_so_many_epochs(diabetes, capsys):
    DNNRegressor(verbose=15, **FAST).fit(*diabetes)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("[DNNRegressor] epoch 15  loss ")


# -- what can go wrong -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cls", REGRESSORS + CLASSIFIERS)
def test_divergence_before_anything_is_learnt_is_an_error(cls):
    X, y = load_iris(return_X_y=True)
    model = cls(5, "softplus", solver="sgd", learning_rate=1e200, random_state=0)
    with pytest.raises(FloatingPointError, match=r"diverged in epoch 1.*learning_rate=1e\+200 is too large.*a tenth"):
        model.fit(X, y)
    model.set_params(learning_rate=0.03, solver="momentum").fit(X, y).set_params(learning_rate=1e200)
    with pytest.raises(FloatingPointError):
        model.fit(10 * X, y)
    with pytest.raises(NotFittedError):  # not the old weights in the new units
        model.predict(X)


def test_divergence_later_keeps_the_best_epoch_and_warns():
    # Two orthogonal directions: the first is learnt within two steps, the second is amplified by 1.5 in every step.
    Q = np.linalg.qr(np.random.default_rng(0).normal(size=(40, 2)))[0] * np.sqrt(40)
    X = Q * [1.0, np.sqrt(2.5)]
    y = 100.0 * Q[:, 0]
    model = DNNRegressor(
        (), solver="sgd", learning_rate=0.5, batch_size=None, max_epochs=500, standardize=False, random_state=0
    )
    with pytest.warns(ConvergenceWarning, match=r"diverged in epoch \d+.*The model is that of epoch 2\b.*standardize=True"):
        model.fit(X, y)
    assert model.best_epoch_ == 2 < model.n_iter_ < 500
    assert np.isfinite(model.predict(X)).all()
    assert model.score(X, y) > 0.99


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"hidden_layer_sizes": (0,)}, r"hidden_layer_sizes=\(0,\)"),
        ({"hidden_layer_sizes": 2.5}, "hidden_layer_sizes=2.5"),
        ({"hidden_layer_sizes": "wide"}, "hidden_layer_sizes='wide'"),
        ({"activation": "swish"}, "activation='swish'"),
        ({"solver": "lbfgs"}, "solver='lbfgs'"),
        ({"learning_rate": 0.0}, "learning_rate=0.0"),
        ({"learning_rate": "adaptive"}, "learning_rate='adaptive'"),
        ({"momentum": 1.0}, "momentum=1.0"),
        ({"batch_size": 0}, "batch_size=0"),
        ({"max_epochs": 1.5}, "max_epochs=1.5"),
        ({"alpha": -1.0}, "alpha=-1.0"),
        ({"alpha": np.nan}, "alpha=nan"),
        ({"dropout": 1.0}, "dropout=1.0"),
        ({"mc_samples": -1}, "mc_samples=-1"),
        ({"tol": -0.1}, "tol=-0.1"),
        ({"n_iter_no_change": 0}, "n_iter_no_change=0"),
        ({"dtype": "float16"}, "dtype='float16'"),
        ({"verbose": -1}, "verbose=-1"),
    ],
)
@pytest.mark.parametrize("cls", [DNNRegressor, KernelNetworkClassifier])
def test_bad_arguments_are_named(cls, arguments, message):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=message):
        cls(**arguments).fit(X, y)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [({"kernel": "rfb"}, "kernel='rfb'"), ({"gamma": -1.0}, "gamma=-1.0"), ({"gamma": "big"}, "gamma='big'")],
)
def test_bad_kernels_are_named(arguments, message):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=message):
        KernelNetworkRegressor(**arguments).fit(X, y)


def test_bad_data_is_named(diabetes):
    X, y = diabetes
    with pytest.raises(ValueError, match="y_val=None: validation takes X_val and y_val together"):
        DNNRegressor(**FAST).fit(X, y, X_val=X)
    with pytest.raises(ValueError, match="y_val has 2 targets and y has 1"):
        DNNRegressor(**FAST).fit(X, y, X_val=X, y_val=np.column_stack([y, y]))
    with pytest.raises(ValueError, match="X has 3 features"):
        DNNRegressor(**FAST).fit(X, y, X_val=X[:, :3], y_val=y)
    with pytest.raises(ValueError, match=r"labels that y does not: \['c'\]"):
        DNNClassifier(**FAST).fit(X[:4], list("abab"), X_val=X[:2], y_val=["a", "c"])
    with pytest.raises(ValueError, match="one class only"):
        DNNClassifier(**FAST).fit(X[:5], np.ones(5, dtype=int))
    with pytest.raises(ValueError, match=r"(?i)sample.weight"):
        DNNRegressor(**FAST).fit(X, y, sample_weight=np.zeros(len(y)))
    with pytest.raises(AttributeError, match="coefs_ exists after fit"):
        _ = DNNRegressor().coefs_
