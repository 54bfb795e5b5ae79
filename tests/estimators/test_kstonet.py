import pickle
import warnings
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes, load_iris, load_linnerud, make_classification
from sklearn.metrics import mean_squared_error
from sklearn.utils.estimator_checks import parametrize_with_checks

from kstonet import KStoNetClassifier, KStoNetRegressor, StoNetClassifier, StoNetRegressor
from kstonet.datasets import make_measurement_error
from kstonet.iro import CHUNK
from kstonet.layers.activations import get_activation
from kstonet.layers.dense import DenseLayer

pytestmark = pytest.mark.usefixtures("few_folds", "few_steps")  # how good choices and intervals are is tested elsewhere
FAST = {"max_iter": 6, "n_average": 2, "n_imputation_steps": 10, "random_state": 0}


def expected_failures(estimator):
    reason = (
        "the imputation draws one stream of noise for all rows: a row "
        "given twice and a row of weight two see different draws and agree in distribution only"
    )
    return {f"check_sample_weight_equivalence_on_{kind}_data": reason for kind in ("dense", "sparse")}


SHORT = {"max_iter": 2, "n_average": 1, "n_imputation_steps": 1, "random_state": 0}
ESTIMATORS = [
    KStoNetRegressor(residuals=None, **SHORT),  # chooses its settings, once; for out-of-sample residuals it would eleven times
    KStoNetRegressor((3,), tuning="none", loss="squared", **SHORT),  # has intervals, and partial_fit
    KStoNetClassifier(tol=0.1, **SHORT),
    StoNetRegressor((3,), **SHORT),
    StoNetClassifier((3,), tol=0.1, **SHORT),  # one check sets max_iter=1000: it ends where nothing changes any more
]


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def halves(n):
    """Training and test rows of the paper's Section 3.2."""
    X, y = make_measurement_error(2 * n, random_state=0)
    return X[:n], y[:n], X[n:], y[n:]


@pytest.mark.parametrize("sizes", [(5,), (8, 8, 8)])
def test_no_seed_diverges(sizes):
    X, y, Xt, yt = halves(250)
    errors = []
    for seed in range(4):  # tests/long has twenty
        model = KStoNetRegressor(
            sizes, tuning="none", activation="tanh", C=1.0, max_iter=15, residuals=None, random_state=seed
        ).fit(X, y)
        assert all(record["n_shrinks"] == 0 for record in model.history_)
        errors.append(mean_squared_error(yt, model.predict(Xt)))
    assert max(errors) <= 1.25 * np.median(errors)
    assert max(errors) < yt.var()


def test_raising_c_never_makes_the_training_error_worse():
    X, y, _, _ = halves(200)
    losses = []
    for C in (1.0, 10.0, 100.0, 1000.0):
        model = KStoNetRegressor(tuning="none", C=C, max_iter=20, residuals=None, random_state=0).fit(X, y)
        losses.append(np.mean([record["loss"] for record in model.history_[-5:]]))
    assert all(later <= 1.02 * earlier for earlier, later in pairwise(losses))


def test_same_seed_same_model_and_different_seed_different_path():
    X, y = load_diabetes(return_X_y=True)
    a, b = (KStoNetRegressor(tuning="none", **FAST).fit(X[:150], y[:150]).predict(X[150:]) for _ in range(2))
    np.testing.assert_array_equal(a, b)
    c = KStoNetRegressor(tuning="none", **(FAST | {"random_state": 1})).fit(X[:150], y[:150]).predict(X[150:])
    assert not np.array_equal(a, c)


def test_multi_output_and_averaging():
    X, Y = load_linnerud(return_X_y=True)
    model = KStoNetRegressor(tuning="none", **FAST).fit(X, Y)
    assert model.predict(X).shape == Y.shape
    outputs = model.trained_.outputs(X)
    assert outputs.shape == (2, len(X), 3)
    np.testing.assert_allclose(model.predict(X), Y.mean(axis=0) + Y.std(axis=0) * outputs.mean(axis=0))


def test_prediction_on_the_training_rows_is_the_fitted_network():
    X, y = load_diabetes(return_X_y=True)
    states = []
    model = KStoNetRegressor(tuning="none", **(FAST | {"n_average": 1}), residuals=None, callback=states.append).fit(X, y)
    *_, hidden, fitted = states[-1].network.forward()
    np.testing.assert_allclose(model.predict(X), y.mean() + y.std() * fitted[:, 0], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(model.transform(X), hidden, atol=1e-8)


def test_units_with_their_own_kernels():
    X, y = load_diabetes(return_X_y=True)
    states, own = [], {"gamma": [0.05, 0.1, 0.05], "C": [1.0, 5.0, 10.0], "epsilon": [0.1, 0.01, 0.0]}
    model = KStoNetRegressor((3,), tuning="none", **own, residuals=None, callback=states.append, **FAST).fit(X, y)
    first = states[-1].network.first
    assert len(first.groups) == len(model.trained_.expansion.parts) == 2
    np.testing.assert_allclose(model.transform(X), first.mean(), atol=1e-8)  # one hidden layer: the first is the last
    mixed = KStoNetRegressor((2,), tuning="none", kernel=["rbf", "matern32"], **FAST).fit(X, y)
    assert np.isfinite(mixed.predict(X)).all()


def test_precomputed_kernel_is_the_named_one():
    X, y = load_diabetes(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    named = KStoNetRegressor(tuning="none", gamma=0.1, **FAST).fit(X[:100], y[:100])
    K = named.kernel_(X, X[:100])
    given = KStoNetRegressor(tuning="none", kernel="precomputed", **FAST).fit(K[:100], y[:100])
    assert np.corrcoef(given.predict(K[100:]), named.predict(X[100:]))[0, 1] > 0.9


@pytest.mark.parametrize("classes", [2, 3])
def test_classification(classes):
    X, y = make_classification(300, 6, n_informative=4, n_classes=classes, random_state=0)
    labels = np.array(["yes", "no", "maybe"])[y]
    model = KStoNetClassifier(tuning="none", max_iter=10, random_state=0).fit(X[:200], labels[:200])
    p = model.predict_proba(X[200:])
    np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-12)
    assert (p >= 0).all()
    np.testing.assert_array_equal(model.predict(X[200:]), model.classes_[p.argmax(axis=1)])
    assert model.score(X[200:], labels[200:]) > 0.75


def test_iris_and_frames():
    X, y = load_iris(return_X_y=True)
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    model = KStoNetClassifier(tuning="none", **FAST).fit(frame, y)
    assert list(model.feature_names_in_) == ["a", "b", "c", "d"]
    assert model.score(frame, y) > 0.95


def test_history_callback_verbose_and_early_stop(capsys):
    X, y = load_diabetes(return_X_y=True)
    seen = []
    model = KStoNetRegressor(tuning="none", **FAST, callback=seen.append, verbose=1).fit(X, y)
    assert len(seen) == len(model.history_) == model.n_iter_ == 6
    assert {"loss", "noise", "step_size", "svr_gap", "seconds_impute", "seconds_first_layer"} <= set(model.history_[0])
    assert "7/7" in capsys.readouterr().err  # the intervals are the last step
    stopped = KStoNetRegressor(tuning="none", max_iter=200, tol=0.5, n_iter_no_change=3, random_state=0).fit(X, y)
    assert stopped.n_iter_ < 200


def test_an_interrupt_keeps_the_model_so_far():
    X, y = load_diabetes(return_X_y=True)

    def stop(state):
        if state.iteration == 3:
            raise KeyboardInterrupt

    model = KStoNetRegressor(tuning="none", **FAST, callback=stop).fit(X, y)
    assert model.n_iter_ == 3
    assert np.isfinite(model.predict(X)).all()


def test_warm_start_goes_on():
    X, y = load_diabetes(return_X_y=True)
    once = KStoNetRegressor(tuning="none", **(FAST | {"max_iter": 6}), residuals=None).fit(X, y)
    twice = KStoNetRegressor(tuning="none", **(FAST | {"max_iter": 3}), residuals=None, warm_start=True).fit(X, y).fit(X, y)
    assert twice.n_iter_ == 6
    np.testing.assert_allclose(twice.predict(X), once.predict(X))


def test_pickle_is_small_and_predicts_the_same():
    X, y = load_diabetes(return_X_y=True)
    model = KStoNetRegressor(tuning="none", **FAST).fit(X, y)
    stored = pickle.dumps(model)
    assert len(stored) < 8 * len(X) ** 2 / 4
    np.testing.assert_array_equal(pickle.loads(stored).predict(X), model.predict(X))


def test_degenerate_data_gives_sensible_fits():
    X = np.random.default_rng(0).normal(size=(4, 2))
    assert np.isfinite(KStoNetRegressor((20,), tuning="none", **FAST).fit(X, [1.0, 2.0, 3.0, 4.0]).predict(X)).all()
    np.testing.assert_allclose(KStoNetRegressor(tuning="none", **FAST).fit(X, np.full(4, 7.0)).predict(X), 7.0, atol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"hidden_layer_sizes": (0,)}, r"hidden_layer_sizes=\(0,\)"),
        ({"hidden_layer_sizes": ()}, "hidden_layer_sizes"),
        ({"activation": "swish"}, "activation='swish'"),
        ({"C": -1.0}, "C=-1.0"),
        ({"C": [1.0, 2.0], "hidden_layer_sizes": (5,)}, "one for each of the 5"),
        ({"epsilon": -1.0}, "epsilon=-1.0"),
        ({"friction": 0.0}, "friction=0.0"),
        ({"step_size": "small"}, "step_size='small'"),
        ({"noise_variance": -1.0}, "noise_variance=-1.0"),
        ({"noise_variance": [(0.1, 0.1)]}, r"noise_variance=\[\(0.1, 0.1\)\] must be .* every layer above the first"),
        ({"hidden_layer_sizes": (3, 2), "noise_variance": [(0.1, -1.0)]}, "noise_variance=.* must be"),
        ({"hidden_layer_sizes": (3, 2), "noise_variance": [(0.1, 0.1), (0.1,)]}, "noise_variance=.* must be"),
        ({"step_size": [(0.1,)]}, r"step_size=\[\(0.1,\)\] must be"),
        ({"max_iter": 0}, "max_iter=0"),
        ({"penalty": "l3"}, "penalty='l3'"),
        ({"kernel": "rfb"}, "kernel='rfb'"),
        ({"hidden_layer_sizes": (2,), "kernel": ["rbf"]}, r"kernel=\['rbf'\] .*: each must be .* one for each of the 2"),
        ({"sampler": "nuts"}, "sampler='nuts' must be one of sghmc, mala, hmc, gibbs"),
        ({"sampler": "mala", "temperature": 0.0}, "temperature=0.0"),
        ({"alpha": -1.0}, "alpha=-1.0"),
        ({"svr_tol": 0.0}, "svr_tol=0.0"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    X, y = load_diabetes(return_X_y=True)
    with pytest.raises(ValueError, match=message):
        KStoNetRegressor(tuning="none", **arguments).fit(X[:50], y[:50])


def test_one_class_is_refused():
    with pytest.raises(ValueError, match="one class only"):
        KStoNetClassifier(tuning="none").fit(np.zeros((5, 1)), np.ones(5, dtype=int))


def test_fitted_models_keep_support_vectors_only():
    X, y = load_diabetes(return_X_y=True)
    settings = FAST | {"n_average": 1}
    wide = {"hidden_layer_sizes": (2,), "epsilon": 1.0, "C": 10.0}
    sparse = KStoNetRegressor(tuning="none", **settings, **wide).fit(X, y)
    dense = KStoNetRegressor(tuning="none", **settings, **wide, residuals=None).fit(X, y)
    assert sparse.n_support_ < 0.8 * len(X) <= len(X) == dense.n_support_
    assert len(pickle.dumps(sparse)) < len(pickle.dumps(dense))
    # both functions are certified to svr_tol, so they agree to its order
    assert np.abs(sparse.predict(X) - dense.predict(X)).max() < 0.1 * y.std()


def test_validation_rows_are_watched_and_stop_the_training():
    X, y, Xv, yv = halves(150)
    model = KStoNetRegressor(tuning="none", **FAST, gamma=[0.1, 0.2, 0.1], hidden_layer_sizes=(3,)).fit(
        X, y, X_val=Xv, y_val=yv
    )
    last = model.history_[-1]
    single = KStoNetRegressor(
        tuning="none", **(FAST | {"n_average": 1}), gamma=[0.1, 0.2, 0.1], hidden_layer_sizes=(3,), residuals=None
    )
    single.fit(X, y)
    assert last["validation_score"] == pytest.approx(single.score(Xv, yv), abs=1e-8)
    assert last["score"] == pytest.approx(single.score(X, y), abs=1e-8)
    assert last["validation_loss"] == pytest.approx(mean_squared_error(yv, single.predict(Xv)) / y.var())
    stopped = KStoNetRegressor(tuning="none", max_iter=200, tol=0.2, n_iter_no_change=3, random_state=0).fit(
        X, y, X_val=Xv, y_val=yv
    )
    assert stopped.n_iter_ < 200
    labels = np.where(y > 0, "up", "down")
    classifier = KStoNetClassifier(tuning="none", **FAST).fit(X, labels, X_val=Xv, y_val=np.where(yv > 0, "up", "down"))
    assert 0.5 < classifier.history_[-1]["validation_score"] <= 1.0
    with pytest.raises(ValueError, match="y_val=None: validation takes X_val and y_val together"):
        KStoNetRegressor(tuning="none", **FAST).fit(X, y, X_val=Xv)
    with pytest.raises(ValueError, match="which y does not"):
        KStoNetClassifier(tuning="none", **FAST).fit(X, labels, X_val=Xv, y_val=["left"] * len(Xv))


@pytest.mark.parametrize("sampler", ["mala", "hmc", "gibbs"])
def test_every_sampler_trains(sampler):
    X, y, Xt, yt = halves(150)
    model = KStoNetRegressor(
        tuning="none", sampler=sampler, C=2.0, max_iter=10, n_average=5, n_imputation_steps=10, residuals=None, random_state=0
    ).fit(X, y)
    assert 0.3 < model.history_[-1]["acceptance"] <= 1.0
    assert model.score(Xt, yt) > 0.3


def test_the_number_of_jobs_changes_nothing():
    """More rows than are imputed together, so that there is something to share."""
    X = np.random.default_rng(0).normal(size=(CHUNK + 100, 3))
    short = FAST | {"max_iter": 2, "n_imputation_steps": 3, "residuals": None}
    a, b = (StoNetRegressor(**short, n_jobs=n_jobs).fit(X, np.sin(X[:, 0])).predict(X) for n_jobs in (None, 3))
    np.testing.assert_array_equal(a, b)


def test_networks_that_widen_get_a_note():
    X, y = load_diabetes(return_X_y=True)
    with pytest.warns(UserWarning, match="3-5-1 .* is not pyramidal"):
        KStoNetRegressor((3, 5), tuning="none", **FAST).fit(X[:50], y[:50])
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        KStoNetRegressor((5, 3), tuning="none", **FAST).fit(X[:50], y[:50])


def test_automatic_alpha_is_of_the_order_of_the_theory():
    """Proportional to the residual of the fit before, to √log(inputs), and to 1/√n."""
    X, y = load_diabetes(return_X_y=True)
    states = []
    model = KStoNetRegressor((16, 4), tuning="none", **FAST, residuals=None, callback=states.append).fit(X, y)
    alphas = np.array([[layer.alpha for layer in state.network.uppers] for state in states])
    np.testing.assert_allclose(alphas[:, 0], np.sqrt(2.0) * alphas[:, 1])  # log 16 = 2 log 4
    residuals = np.sqrt([record["loss"] for record in model.history_])
    np.testing.assert_allclose(alphas[1:, 0] / residuals[:-1], alphas[1, 0] / residuals[0])
    layer = DenseLayer.new(4, 1, get_activation("tanh"), "lasso", 0.0)
    assert layer.with_penalty(None, 1.0, 100).alpha == pytest.approx(2 * layer.with_penalty(None, 1.0, 400).alpha)
    assert 0.001 < alphas.min() <= alphas.max() < 0.02


def test_polars_frames():
    polars = pytest.importorskip("polars")
    X, y = load_iris(return_X_y=True)
    frame = polars.DataFrame({name: X[:, j] for j, name in enumerate("abcd")})
    model = KStoNetClassifier(tuning="none", **FAST).set_output(transform="polars").fit(frame, polars.Series(y))
    assert list(model.feature_names_in_) == list("abcd")
    assert isinstance(model.transform(frame), polars.DataFrame)
    np.testing.assert_array_equal(model.predict(frame), KStoNetClassifier(tuning="none", **FAST).fit(X, y).predict(X))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.rename({"a": "z"}))


def test_progress_goes_to_standard_error_and_never_to_standard_output(capsys):
    X, y = load_diabetes(return_X_y=True)
    KStoNetRegressor(tuning="none", **FAST, verbose=2).fit(X, y, X_val=X, y_val=y)
    seen = capsys.readouterr()
    assert seen.out == ""
    assert seen.err.count("iteration") == 6
    assert "validation" in seen.err
