import numpy as np

from kstonet.gram.kernels.squash import squashed
from kstonet.tuning.automatic import automatic_choice
from kstonet.tuning.heavy_tails import heavy_tails
from kstonet.tuning.screening_ridge import ridge_fit

RNG = np.random.default_rng(0)
LATENT = RNG.normal(size=(900, 3))
HEAVY = np.exp(1.5 * LATENT)
TARGET = (LATENT[:, 0] * LATENT[:, 1] + LATENT[:, 2])[:, None] / np.sqrt(2.0)


def error(choice, X):
    fit = ridge_fit(choice.kernel(X[:300], X[:300]), TARGET[:300], choice.ridges[0])
    return np.sqrt(np.mean((TARGET[300:] - choice.kernel(X[300:], X[:300]) @ fit.coef - fit.intercept) ** 2))


def test_drawn_features_have_light_tails():
    columns = np.column_stack([HEAVY[:, 0], LATENT[:, 0], RNG.integers(0, 5, size=900) ** 6, np.zeros(900)])
    spreads = [spread for _, spread in heavy_tails(columns)]
    assert np.isfinite(spreads).tolist() == [True, False, False, False]
    drawn = squashed(columns, heavy_tails(columns))
    assert heavy_tails(drawn) is None
    np.testing.assert_array_equal(drawn[:, 1:], columns[:, 1:])


def test_a_feature_that_is_mostly_one_value_has_a_spread():
    column = np.where(np.arange(200) % 4 == 0, np.exp(3 * RNG.normal(size=200)), 0.0)
    assert 0 < heavy_tails(column[:, None])[0][1] < np.inf


def test_features_with_heavy_tails_are_drawn_in_where_that_is_better():
    standard = (HEAVY - HEAVY.mean(axis=0)) / HEAVY.std(axis=0)
    choice = automatic_choice(standard[:300], TARGET[:300], kernels=("laplacian",))
    assert choice.kernel.squash is not None
    assert "heavy tails of 3 features are drawn in" in choice.reason
    assert error(choice, standard) < 0.3  # 0.5 as they are
    bent = automatic_choice(standard[:300], TARGET[:300])
    assert "3 features are bent" in bent.reason
    assert error(bent, standard) < 0.1


def test_features_stay_as_they_are_where_that_is_better():
    """The target is linear in features with heavy tails."""
    X = RNG.standard_t(3, size=(300, 3))
    Y = X @ np.array([[1.0], [2.0], [-1.0]])
    choice = automatic_choice(X, (Y - Y.mean()) / Y.std())
    assert heavy_tails(X) is not None
    assert choice.kernel.squash is None


def test_a_feature_that_is_constant_in_the_rows_that_are_looked_at():
    """Of many rows a part is looked at; the unit of a feature that is drawn in comes from more of them."""
    n = 6000
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, 3))
    order = np.random.default_rng(0).permutation(n)
    X[:, 0] = 0.0
    X[order[2000:2040], 0] = np.exp(rng.normal(size=40))
    choice = automatic_choice(X, np.sin(2.0 * X[:, 1:2]) / 0.7)
    assert heavy_tails(X) is not None
    assert choice.signal
    assert np.isfinite(choice.kernel(X[:50], X[:50])).all()
