import pickle
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_linnerud
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR
from sklearn.utils.estimator_checks import (
    check_sample_weight_equivalence_on_dense_data,
    check_sample_weight_equivalence_on_sparse_data,
    parametrize_with_checks,
)

from kstonet import MultiTargetSVR

EQUIVALENCE = (check_sample_weight_equivalence_on_dense_data, check_sample_weight_equivalence_on_sparse_data)


def expected_failures(estimator):
    reason = f"predictions agree to tol={estimator.tol}, not to 1e-7"
    return {check.__name__: reason for check in EQUIVALENCE}


@parametrize_with_checks([MultiTargetSVR(), MultiTargetSVR(sparse=False)], expected_failed_checks=expected_failures)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


@pytest.mark.parametrize("check", EQUIVALENCE)
def test_weights_are_repeated_rows_to_the_digits_that_scikit_learn_asks_for(check):
    """The check compares predictions to seven digits; ours agree to the tolerance of the fit."""
    check("MultiTargetSVR", MultiTargetSVR(tol=1e-12))


@pytest.fixture(scope="module")
def linnerud():
    X, Y = load_linnerud(return_X_y=True)
    return StandardScaler().fit_transform(X), StandardScaler().fit_transform(Y)


@pytest.fixture(scope="module")
def diabetes():
    X, y = load_diabetes(return_X_y=True)
    return StandardScaler().fit_transform(X), (y - y.mean()) / y.std()


@pytest.mark.parametrize("sparse", [True, False])
def test_predictions_are_those_of_scikit_learn(diabetes, sparse):
    X, y = diabetes
    ours = MultiTargetSVR(C=3.0, epsilon=0.1, tol=1e-6 if sparse else 1e-5, sparse=sparse).fit(X[:300], y[:300])
    theirs = SVR(C=3.0, epsilon=0.1, tol=1e-6).fit(X[:300], y[:300])
    np.testing.assert_allclose(ours.predict(X[300:]), theirs.predict(X[300:]), atol=5e-3)
    if sparse:
        assert set(ours.support_) == set(theirs.support_)
        assert ours.dual_coef_.shape == theirs.dual_coef_.shape
        assert ours.n_support_[0] == len(theirs.support_)


def test_many_targets(linnerud):
    X, Y = linnerud
    model = MultiTargetSVR(C=[1.0, 2.0, 3.0], epsilon=[0.1, 0.2, 0.0], tol=1e-6).fit(X, Y)
    assert model.predict(X).shape == Y.shape
    assert model.dual_coef_.shape == (3, len(model.support_))
    for j in range(3):
        alone = SVR(C=[1.0, 2.0, 3.0][j], epsilon=[0.1, 0.2, 0.0][j], tol=1e-6).fit(X, Y[:, j])
        np.testing.assert_allclose(model.predict(X)[:, j], alone.predict(X), atol=5e-3)


def test_refit_equals_a_fresh_fit_and_reuses_the_factor(linnerud):
    X, Y = linnerud
    model = MultiTargetSVR(C=2.0, tol=1e-6).fit(X, Y)
    made = model._gram.n_factorizations
    new = Y[::-1] * 0.9
    np.testing.assert_allclose(model.refit(new).predict(X), MultiTargetSVR(C=2.0, tol=1e-6).fit(X, new).predict(X), atol=1e-4)
    assert model._gram.n_factorizations == made
    assert model.refit(Y[:, 0]).predict(X).ndim == 1  # another number of targets
    with pytest.raises(ValueError, match=r"refit needs targets for the 20 rows"):
        model.refit(Y[:5])
    with pytest.raises(ValueError, match="NaN"):
        model.refit(np.full(20, np.nan))


def test_warm_start_fit(diabetes):
    X, y = diabetes
    model = MultiTargetSVR(C=5.0, warm_start=True, sparse=False).fit(X, y)
    first, gram = model.n_iter_.copy(), model._gram
    model.fit(X, y)
    assert model._gram is gram
    assert model.n_iter_ <= first
    model.fit(X[:50], y[:50])
    assert model._gram is not gram


def test_precomputed_and_callable_kernels_agree_with_the_named_one(diabetes):
    X, y = diabetes
    X, y, new = X[:150], y[:150], X[150:170]
    named = MultiTargetSVR(gamma=0.1, tol=1e-6).fit(X, y)
    kernel = named.kernel_
    given = MultiTargetSVR(kernel="precomputed", tol=1e-6).fit(kernel(X, X), y)
    called = MultiTargetSVR(kernel=lambda A, B: kernel(A, B), tol=1e-6).fit(X, y)
    np.testing.assert_allclose(given.predict(kernel(new, X)), named.predict(new), atol=1e-5)
    np.testing.assert_allclose(called.predict(new), named.predict(new), atol=1e-5)


def test_pickle_leaves_the_matrix_behind_and_refit_rebuilds_it(diabetes):
    X, y = diabetes
    model = MultiTargetSVR().fit(X, y)
    stored = pickle.dumps(model)
    assert len(stored) < 8 * len(X) ** 2 / 4
    loaded = pickle.loads(stored)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert loaded.refit(2 * y).duality_gap_[0] <= 1e-3


def test_in_pipeline_grid_search_and_with_frames(diabetes):
    X, y = diabetes
    frame = pd.DataFrame(X[:120], columns=[f"c{i}" for i in range(X.shape[1])])
    search = GridSearchCV(make_pipeline(StandardScaler(), MultiTargetSVR()), {"multitargetsvr__C": [0.1, 1.0]}, cv=3)
    search.fit(frame, y[:120])
    model = MultiTargetSVR().fit(frame, y[:120])
    assert list(model.feature_names_in_) == list(frame.columns)
    assert clone(model).get_params() == model.get_params()


def test_sparse_false_has_no_support_and_says_why(diabetes):
    X, y = diabetes
    model = MultiTargetSVR(sparse=False).fit(X, y)
    assert not hasattr(model, "support_")
    with pytest.raises(AttributeError, match="sparse=True"):
        _ = model.n_support_
    with pytest.raises(AttributeError, match="after fit"):
        _ = MultiTargetSVR().support_


def test_verbose_prints_progress(diabetes, capsys):
    X, y = diabetes
    MultiTargetSVR(verbose=1).fit(X, y)
    seen = capsys.readouterr()
    assert seen.out == ""
    assert "worst gap" in seen.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"C": 0.0}, "C=0.0"),
        ({"epsilon": -1.0}, "epsilon=-1.0"),
        ({"kernel": "rfb"}, "kernel='rfb'"),
        ({"gamma": "wide"}, "gamma='wide'"),
        ({"max_memory": 1e3}, "max_memory"),
        ({"dtype": "int8"}, "dtype='int8'"),
    ],
)
def test_bad_arguments_are_named(diabetes, arguments, message):
    X, y = diabetes
    with pytest.raises((ValueError, MemoryError), match=message):
        MultiTargetSVR(**arguments).fit(X, y)


def test_one_row_and_constant_targets():
    assert MultiTargetSVR().fit([[1.0]], [3.0]).predict([[2.0]]) == pytest.approx(3.0)
    model = MultiTargetSVR().fit(np.arange(10.0)[:, None], np.full(10, 7.0))
    np.testing.assert_allclose(model.predict([[3.0]]), 7.0)
    assert len(model.support_) == 0


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        *(("C", bad) for bad in ("x", None)),
        *(("tol", bad) for bad in (None, 0.0)),
        *(("max_iter", bad) for bad in (None, 1.5)),
        *(("gamma", bad) for bad in (None, [1.0])),
        ("epsilon", "x"),
        ("max_memory", "x"),
    ],
)
def test_what_is_no_number_is_named(name, bad):
    with pytest.raises(ValueError, match=rf"{name}={re.escape(repr(bad))} must be"):
        MultiTargetSVR(**{name: bad}).fit([[0.0], [1.0]], [0.0, 1.0])
