"""What the first call chooses: given values are respected, the choice is reproducible, and nothing is worse than the mean."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from kstonet import KStoNetClassifier, KStoNetRegressor
from kstonet.gram import DenseGram, Kernel, LowRank, planning
from kstonet.tuning.stationary import FAMILIES

RNG = np.random.default_rng(0)
X = RNG.normal(size=(160, 4))
Y = np.sin(2.0 * X[:, 0]) * X[:, 1] + 0.1 * RNG.normal(size=160)
SHORT = {"residuals": None, "random_state": 0}


def test_everything_left_out_is_chosen_and_said(few_folds):
    model = KStoNetRegressor(random_state=0).fit(X, Y)
    assert set(model.tuned_) == {
        "kernel", "gamma", "length_scale", "C", "loss", "epsilon", "hidden_layer_sizes", "max_iter", "n_average", "residuals",
        "target_transform",
    }  # fmt: skip
    assert model.tuned_["loss"] == "squared"
    assert "leave-one-out" in model.tuning_["reason"]
    assert model.history_[0]["tuning"] == model.tuning_["reason"]
    assert {"kernel", "score", "rows"} <= model.tuning_["table"][0].keys()
    assert model.get_params()["kernel"] is None  # the estimator is as the user made it


def test_the_chosen_values_train_the_same_network():
    model = KStoNetRegressor(**SHORT).fit(X, Y)
    again = KStoNetRegressor(tuning="none", **model.tuned_, **SHORT).fit(X, Y)
    np.testing.assert_allclose(again.predict(X), model.predict(X), rtol=1e-10)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", ["rbf", "matern32", "laplacian"])
def test_a_family_that_was_named_has_the_widths_that_were_chosen(name, seed):
    """Kernels with bent features or several of them once gave way to one of the default width."""
    x = np.random.default_rng(seed).uniform(-3, 3, size=(300, 1))
    wave = np.sin(8 * x[:, 0])
    y = wave + 0.1 * np.random.default_rng(seed).normal(size=300)
    model = KStoNetRegressor(kernel=name, random_state=seed, residuals=None).fit(x, y)
    assert model.score(x, wave) > 0.97
    kernels = model.tuned_.get("kernel", name)
    kernels = [kernels] if isinstance(kernels, str | Kernel) else kernels
    assert {type(FAMILIES[name].make((1.0,)))} == {
        type(FAMILIES[kernel].make((1.0,))) if isinstance(kernel, str) else type(kernel) for kernel in kernels
    }
    again = KStoNetRegressor(**{"kernel": name, "tuning": "none", **model.tuned_, **SHORT, "random_state": seed}).fit(x, y)
    np.testing.assert_allclose(again.predict(x), model.predict(x), rtol=1e-10)


def test_the_choice_is_the_same_for_any_number_of_threads():
    one, two = (KStoNetRegressor(n_jobs=jobs, **SHORT).fit(X, Y) for jobs in (1, 2))
    np.testing.assert_array_equal(one.predict(X), two.predict(X))


def test_it_beats_the_fixed_defaults_where_features_are_irrelevant():
    rows, new = (np.random.default_rng(seed).normal(size=(300, 12)) for seed in (1, 2))
    target = lambda values: np.sin(3.0 * values[:, 0]) + values[:, 1]  # noqa: E731
    scores = [
        KStoNetRegressor(tuning=tuning, **SHORT).fit(rows, target(rows)).score(new, target(new))
        for tuning in ("none", "fast", "thorough")
    ]
    assert scores[0] < 0.8 < 0.95 < min(scores[1:])


def test_noise_is_predicted_by_its_mean():
    """Twenty sets without a signal: the squared error stays within 1.02 of the mean's on average."""
    ratios = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        rows, noise, new = rng.normal(size=(80, 6)), rng.normal(size=80), rng.normal(size=(400, 6))
        predicted = KStoNetRegressor(max_iter=3, **SHORT).fit(rows, noise).predict(new)
        fresh = rng.normal(size=400)
        ratios.append(np.mean((fresh - predicted) ** 2) / np.mean((fresh - noise.mean()) ** 2))
    assert np.mean(ratios) < 1.04


@pytest.mark.parametrize(
    "given",
    [
        {"kernel": "matern32"},
        {"kernel": "poly"},
        {"gamma": 0.3},
        {"length_scale": [1.0, 1.0, 5.0, 5.0]},
        {"C": 3.0},
        {"loss": "epsilon_insensitive"},
        {"hidden_layer_sizes": (3,)},
        {"kernel": ["rbf", "laplacian", "rbf"]},
        {"kernel": "rbf", "gamma": [0.1, 0.2], "hidden_layer_sizes": (2,)},
        {"kernel": lambda A, B: rbf_kernel(A, B, gamma=0.2)},
        {"max_iter": 2, "n_average": 1},
    ],
)
def test_given_values_are_respected(given):
    model = KStoNetRegressor(**given, **SHORT).fit(X, Y)
    named = {"kernel"} if given.get("kernel") == "matern32" else set()  # a family, whose kernels are chosen with their widths
    assert not (given.keys() - named) & model.tuned_.keys()
    kernels = {type(part.kernel).__name__ for part in model.trained_.expansion.parts}
    if named:
        assert kernels == {"Matern"}
        assert {part.kernel.nu for part in model.trained_.expansion.parts} == {1.5}
    if given.get("kernel") == "poly":
        assert kernels == {"Polynomial"}
    if "hidden_layer_sizes" in given:
        assert model.trained_.hidden_layer_sizes == given["hidden_layer_sizes"]
    if "C" in given:  # it is the C of support vector regressions
        assert model.tuned_["loss"] == "epsilon_insensitive"
    if "max_iter" in given:
        assert model.n_iter_ == 2
    assert model.score(X, Y) > 0.5


def test_a_precomputed_kernel_gets_its_ridge():
    K = rbf_kernel(X, gamma=0.3)
    model = KStoNetRegressor(kernel="precomputed", **SHORT).fit(K[:120, :120], Y[:120])
    assert model.tuned_["loss"] == "squared"
    assert model.score(K[120:, :120], Y[120:]) > 0.5


@pytest.mark.parametrize(
    ("solver", "held"),
    [("auto", "low_rank"), ("dense", "dense"), (LowRank(30, 50), "low_rank")],
)
def test_many_rows_have_no_dense_inverse(monkeypatch, solver, held):
    """Still more are factored only where that is asked for; the limits are lowered so that the test is short."""
    monkeypatch.setattr(planning, "LARGEST_FACTOR", 150)
    monkeypatch.setattr(DenseGram, "largest_inverse", 100)
    monkeypatch.setattr(DenseGram, "_inverted", lambda *_: pytest.fail("a matrix was inverted"))
    plan = KStoNetRegressor(solver=solver, **SHORT).explain_plan(X)
    model = KStoNetRegressor(solver=solver, **SHORT).fit(X, Y)
    assert model.tuned_["loss"] == "squared"
    assert model.plan_.solver == plan.solver == held
    assert model.plan_.reason == plan.reason
    assert model.score(X, Y) > 0.8


@pytest.mark.parametrize("n", [2, 5, 9])
def test_few_rows_keep_the_fixed_defaults(n):
    model = KStoNetRegressor(**SHORT).fit(X[:n], Y[:n])
    assert model.tuned_["kernel"] == "rbf"
    assert "fewer than 10 rows" in model.tuning_["reason"]


@pytest.mark.parametrize(
    ("rows", "targets"),
    [
        (X[:60], np.ones(60)),
        (np.ones((60, 2)), Y[:60]),
        (np.repeat(X[:15], 4, axis=0), Y[:60]),
        (1e8 * X[:60], 1e-9 * Y[:60]),
        (np.random.default_rng(0).standard_t(1.2, size=(60, 3)), np.random.default_rng(1).standard_t(1.2, size=60)),
        (np.random.default_rng(0).normal(size=(40, 500)), Y[:40]),
        (X[:60], np.column_stack([Y[:60], X[:60, 2]])),
    ],
    ids=["constant targets", "constant features", "duplicates", "scales", "heavy tails", "wide", "two targets"],
)
def test_degenerate_tables_give_finite_predictions(rows, targets, few_folds):
    model = KStoNetRegressor(random_state=0).fit(rows, targets)
    assert np.isfinite(model.predict_interval(rows, 0.9)).all()


def test_a_warm_start_keeps_the_choice():
    model = KStoNetRegressor(warm_start=True, max_iter=2, **SHORT).fit(X, Y)
    chosen = model.tuned_
    assert model.fit(X, Y).n_iter_ == 4
    assert model.tuned_ is chosen


def test_weights_of_zero_have_no_say():
    weights = np.r_[np.ones(120), np.zeros(40)]
    spoiled = np.r_[Y[:120], 100.0 + Y[120:]]
    one, other = (KStoNetRegressor(**SHORT).fit(X, y, weights).predict(X) for y in (Y, spoiled))
    np.testing.assert_array_equal(one, other)


def test_wrong_values_are_refused():
    with pytest.raises(ValueError, match="tuning='slow' must be one of 'fast', 'thorough', 'none'"):
        KStoNetRegressor(tuning="slow").fit(X, Y)
    with pytest.raises(ValueError, match="loss='huber' must be one of 'squared', 'epsilon_insensitive', or None"):
        KStoNetRegressor(loss="huber").fit(X, Y)


def test_a_classifier_chooses_a_unit_per_class():
    labels = np.digitize(Y, np.quantile(Y, [0.3, 0.6]))
    model = KStoNetClassifier(**SHORT).fit(X[:120], labels[:120])
    assert model.trained_.hidden_layer_sizes == (3,)
    assert isinstance(model.kernel_, Kernel)
    assert model.score(X[120:], labels[120:]) > 0.55
