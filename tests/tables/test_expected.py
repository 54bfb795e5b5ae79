"""What stands in for missing numbers: conditional means of a normal distribution, against solving for them row by row."""

import numpy as np
import pytest

from kstonet.tables.encoding import TableEncoding, columns_of_numbers
from kstonet.tables.expected import MOST_COLUMNS, ExpectedValues


def correlated(n, seed=0, q=4):
    """Rows of a normal distribution, and its mean and covariance."""
    rng = np.random.default_rng(seed)
    mixing, mean = rng.normal(size=(q, q)), rng.normal(size=q)
    return mean + rng.normal(size=(n, q)) @ mixing.T, mean, mixing @ mixing.T


def learnt(values, missing, weights=None):
    return ExpectedValues.of(np.where(missing, 0.0, values), missing, np.arange(values.shape[1]), weights)


def covariance(expected):
    return np.linalg.inv(expected.partial / np.outer(expected.scale, expected.scale))


def by_solving(expected, row, missing):
    """The conditional mean of the missing values of a row, from the covariance."""
    mean, S = expected.mean, covariance(expected)
    known = ~missing
    slope = np.linalg.solve(S[np.ix_(known, known)], S[np.ix_(known, missing)])
    return mean[missing] + (row[known] - mean[known]) @ slope


@pytest.mark.parametrize("q", [1, 2, 6, 25])
def test_expected_values_are_conditional_means(q):
    values, _, _ = correlated(300, q=q)
    missing = np.random.default_rng(1).random(values.shape) < 0.4
    expected = learnt(values, missing)
    filled = expected.fill(np.where(missing, 7.0, values), missing)
    np.testing.assert_array_equal(filled[~missing], values[~missing])
    for row, gone, found in zip(values, missing, filled, strict=True):
        np.testing.assert_allclose(found[gone], by_solving(expected, row, gone), rtol=1e-7, atol=1e-7)


def test_a_row_is_filled_alike_among_others_and_alone(monkeypatch):
    values, _, _ = correlated(50, q=8)
    missing = np.random.default_rng(1).random(values.shape) < 0.5
    expected = learnt(values, missing)
    together = expected.fill(values.copy(), missing)
    alone = [expected.fill(row[None].copy(), gone[None])[0] for row, gone in zip(values, missing, strict=True)]
    np.testing.assert_allclose(together, alone, rtol=1e-10)
    monkeypatch.setattr("kstonet.tables.expected.BLOCK", 7)
    np.testing.assert_allclose(expected.fill(values.copy(), missing), together, rtol=1e-10)


def test_without_missing_values_the_moments_are_those_of_the_rows():
    values, _, _ = correlated(5000)
    expected = learnt(values, np.zeros(values.shape, dtype=bool))
    np.testing.assert_allclose(expected.mean, values.mean(axis=0), rtol=1e-10)
    S = covariance(expected)
    correlation = S / np.sqrt(np.outer(S.diagonal(), S.diagonal()))
    np.testing.assert_allclose(correlation, np.corrcoef(values.T), atol=0.01)  # the prior takes half a per cent


def test_the_distribution_is_found_though_other_values_decide_what_is_missing():
    """Where the first value is large, the second is missing: the rows that have both have another mean of the second."""
    values, mean, _ = correlated(20_000)
    missing = np.zeros(values.shape, dtype=bool)
    missing[:, 1] = values[:, 0] > mean[0]
    expected = learnt(values, missing)
    of_known_ones = values[~missing[:, 1], 1].mean() - mean[1]
    assert abs(expected.mean[1] - mean[1]) < 0.1 * abs(of_known_ones)  # the prior takes the rest


def test_rows_of_weight_two_count_twice():
    values, _, _ = correlated(80)
    missing = np.random.default_rng(1).random(values.shape) < 0.3
    weights = np.random.default_rng(2).integers(1, 4, 80)
    weighted = learnt(values, missing, weights.astype(np.float64))
    repeated = learnt(np.repeat(values, weights, axis=0), np.repeat(missing, weights, axis=0))
    for name in ("mean", "scale", "partial"):
        np.testing.assert_allclose(getattr(weighted, name), getattr(repeated, name), rtol=0.02, atol=0.02)  # EM ends early


def test_constant_and_equal_columns():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(100, 1))
    values = np.hstack([x, x, np.full((100, 1), 5.0)])
    missing = rng.random(values.shape) < 0.2
    filled = learnt(values, missing).fill(np.where(missing, -1.0, values), missing)
    np.testing.assert_allclose(filled[:, 2], 5.0, atol=0.05)
    one = missing[:, 0] & ~missing[:, 1]
    np.testing.assert_allclose(filled[one, 0], x[one, 0], atol=0.1)


# -- as part of an encoding --------------------------------------------------------------------------------------------------


def test_an_encoding_expects_numbers_from_all_that_is_known():
    pd = pytest.importorskip("pandas")
    from kstonet.tables import columns_of

    rng = np.random.default_rng(0)
    heavy = rng.random(400) < 0.5
    frame = pd.DataFrame({"kind": np.where(heavy, "heavy", "light"), "weight": 10.0 * heavy + rng.normal(size=400)})
    frame["length"] = frame["weight"] + 0.1 * rng.normal(size=400)
    frame.loc[::4, "weight"] = np.nan
    frame.loc[::8, "length"] = np.nan
    encoding = TableEncoding.of(columns_of(frame)).expecting(columns_of(frame))
    matrix = encoding.encode(columns_of(frame))
    places = {name: j for j, name in enumerate(encoding.output_names(list(frame.columns)))}
    neither, no_weight = np.arange(400) % 8 == 0, np.arange(400) % 8 == 4
    weight = matrix[:, places["weight"]]
    np.testing.assert_allclose(weight[neither], 10.0 * heavy[neither], atol=1.0)  # the kind tells
    np.testing.assert_allclose(weight[no_weight], frame["length"][no_weight], atol=1.0)
    np.testing.assert_array_equal(matrix[:, places["weight is missing"]], frame["weight"].isna())
    new = columns_of(frame.assign(kind="new", weight=np.nan, length=np.nan))  # nothing is known
    assert np.isfinite(encoding.encode(new)).all()


@pytest.mark.parametrize(("columns", "missing", "stay"), [(5, False, True), (5, True, False), (MOST_COLUMNS + 1, True, True)])
def test_medians_stay_where_nothing_is_missing_or_there_are_too_many_columns(columns, missing, stay):
    X = np.random.default_rng(0).normal(size=(40, columns))
    if missing:
        X[::3, 0] = np.nan
    read = columns_of_numbers(X)
    encoding = TableEncoding.of(read)
    assert (encoding.expecting(read).expected is None) == stay


@pytest.mark.parametrize("seed", range(3))
def test_a_model_of_correlated_numbers_errs_less_than_with_medians(seed, monkeypatch):
    from kstonet import KStoNetRegressor

    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(600, 2))
    whole = np.hstack([hidden + 0.3 * rng.normal(size=(600, 2)) for _ in range(3)])
    y = np.sin(hidden[:, 0]) + hidden[:, 1]
    X = np.where(rng.random(whole.shape) < 0.2, np.nan, whole)

    def error():
        model = KStoNetRegressor(residuals=None, random_state=0).fit(X[:300], y[:300])
        return model, np.sqrt(np.mean((model.predict(X[300:]) - y[300:]) ** 2))

    model, found = error()
    assert model.encoding_.expected is not None
    monkeypatch.setattr(TableEncoding, "expecting", lambda self, columns, weights=None: self)
    assert found < 0.9 * error()[1]


def test_a_notebook_says_how_missing_numbers_are_encoded():
    from kstonet import KStoNetRegressor

    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 1))
    X = np.hstack([x, x + 0.1 * rng.normal(size=(200, 1))])
    quick = {"tuning": "none", "max_iter": 2, "residuals": None, "random_state": 0}
    shown = KStoNetRegressor(**quick).fit(X, x[:, 0])._repr_html_()
    assert "Missing values" not in shown
    some = np.where(rng.random(X.shape) < 0.2, np.nan, X)
    shown = KStoNetRegressor(**quick).fit(some, x[:, 0])._repr_html_()
    assert "<th>Missing values</th><td>numbers become what the other columns make one expect</td>" in shown
    marked = np.where(x > 0.8, np.nan, np.hstack([x, rng.normal(size=(200, 1))])[:, ::-1])  # both where the target is large
    shown = KStoNetRegressor(**quick).fit(marked, x[:, 0] ** 3)._repr_html_()
    assert "columns of their own say where &#x27;0&#x27;, &#x27;1&#x27; are missing" in shown
