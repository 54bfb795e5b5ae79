from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import softmax

from kstonet import KStoNetClassifier, KStoNetRegressor
from kstonet.gram.kernels import Laplacian, Matern
from kstonet.targets import ClassTargets
from kstonet.tuning import contest
from kstonet.tuning.automatic import automatic_choice
from kstonet.tuning.log_loss import LeftOutLogLoss
from kstonet.tuning.opening import MORE_ROWS
from kstonet.tuning.screening_ridge import ridge_fit


def standard(values):
    return (values - values.mean(axis=0)) / values.std(axis=0)


def smooth(n, p, seed=0, noise=0.1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    return X, standard((np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + noise * rng.normal(size=n))[:, None])


def test_relevant_features_are_found_among_many():
    X, Y = smooth(900, 30)
    choice = automatic_choice(X[:500], Y[:500])
    fit = ridge_fit(choice.kernel(X[:500], X[:500]), Y[:500], choice.ridges[0])
    error = Y[500:] - choice.kernel(X[500:], X[:500]) @ fit.coef - fit.intercept
    assert np.sqrt((error**2).mean()) < 0.35  # an isotropic kernel: above 0.9
    scales = np.array(choice.kernel.length_scale)
    assert scales[3:].min() > scales[:3].max()
    assert choice.signal
    assert abs(choice.noises[0] - np.sqrt((error**2).mean())) < 0.1


def test_relevant_features_are_found_with_few_rows_per_feature():
    X, Y = smooth(900, 60)
    choice = automatic_choice(X[:300], Y[:300])  # five rows per feature
    fit = ridge_fit(choice.kernel(X[:300], X[:300]), Y[:300], choice.ridges[0])
    error = Y[300:] - choice.kernel(X[300:], X[:300]) @ fit.coef - fit.intercept
    assert np.sqrt((error**2).mean()) < 0.5


@pytest.mark.parametrize("seed", range(3))
def test_scales_that_fit_noise_are_not_trusted(seed):
    rng = np.random.default_rng(seed)
    choice = automatic_choice(rng.normal(size=(200, 60)), standard(rng.normal(size=(200, 1))))
    assert len(set(choice.kernel.length_scale)) == 1


def test_pure_noise_is_predicted_by_the_mean():
    rng = np.random.default_rng(1)
    for _ in range(3):
        X, Y = rng.normal(size=(150, 5)), standard(rng.standard_t(3, size=(150, 1)))
        choice = automatic_choice(X, Y)
        fit = ridge_fit(choice.kernel(X, X), Y, choice.ridges[0])
        predicted = choice.kernel(rng.normal(size=(200, 5)), X) @ fit.coef + fit.intercept
        assert np.abs(predicted).mean() < 0.3
    assert choice.table[-1]["kernel"] == "constant"


def test_a_choice_without_signal_is_trained_to_the_mean():
    X = np.random.default_rng(0).normal(size=(60, 2))
    Y = standard(np.random.default_rng(5).normal(size=(60, 1)))
    choice = automatic_choice(X, Y)
    assert not choice.signal
    assert "better than the mean" in choice.reason
    model = KStoNetRegressor(
        (6,),
        tuning="none",
        **choice.settings("epsilon_insensitive", 6),
        max_iter=4,
        n_average=2,
        residuals=None,
        random_state=0,
    ).fit(X, Y[:, 0])
    assert np.abs(model.predict(X)).max() < 0.5


def test_a_step_function_gets_a_rough_kernel():
    X = np.random.default_rng(0).uniform(-2, 2, size=(400, 2))
    choice = automatic_choice(X, standard(np.sign(X[:, :1]) + np.floor(2 * X[:, 1:])))
    assert isinstance(choice.kernel, Laplacian) or (isinstance(choice.kernel, Matern) and choice.kernel.nu == 0.5)


def test_any_number_of_threads_gives_the_same_choice():
    X, Y = smooth(300, 4)
    one, two = automatic_choice(X, Y), automatic_choice(X, Y, n_jobs=2)
    assert one.kernels == two.kernels
    assert one.ridges == two.ridges


def test_rows_of_weight_zero_count_nowhere():
    X, Y = smooth(200, 3)
    weights = np.ones(200)
    weights[150:] = 0.0
    spoiled = np.where(weights[:, None] > 0, Y, 50.0)
    assert automatic_choice(X, spoiled, weights).kernels == automatic_choice(X[:150], Y[:150], np.ones(150)).kernels


@pytest.mark.parametrize("n", [5, 12, 30])
def test_few_rows_constant_columns_and_several_targets(n):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(n, 2)), np.zeros(n)])
    choice = automatic_choice(X, standard(np.column_stack([X[:, 0], rng.normal(size=n)])))
    assert np.isfinite(choice.C).all()
    assert np.isfinite(choice.epsilon).all()
    assert np.isfinite(choice.kernel.length_scale).all()


def test_all_rows_the_same():
    choice = automatic_choice(np.zeros((20, 2)), standard(np.random.default_rng(0).normal(size=(20, 1))))
    assert not choice.signal


def test_the_settings_make_a_network_as_good_as_the_ridge_regression():
    X, Y = smooth(700, 4)
    choice = automatic_choice(X[:350], Y[:350])
    fit = ridge_fit(choice.kernel(X[:350], X[:350]), Y[:350], choice.ridges[0])
    ridge = Y[350:, 0] - (choice.kernel(X[350:], X[:350]) @ fit.coef + fit.intercept)[:, 0]
    model = KStoNetRegressor(
        (6,),
        tuning="none",
        **choice.settings("epsilon_insensitive", 6),
        max_iter=8,
        n_average=4,
        residuals=None,
        random_state=0,
    )
    network = Y[350:, 0] - model.fit(X[:350], Y[:350, 0]).predict(X[350:])
    assert np.sqrt((network**2).mean()) < 1.1 * np.sqrt((ridge**2).mean())


def test_the_table_says_what_was_tried():
    X, Y = smooth(120, 3)
    choice = automatic_choice(X, Y)
    assert {row["kernel"] for row in choice.table} >= {"rbf", "matern32", "laplacian", "constant"}
    assert {row["relevance"] for row in choice.table} >= {"none", "evidence"}
    assert all(set(row) == {"kernel", "gamma", "relevance", "ridge", "score", "rows"} for row in choice.table)
    assert "variance of the targets" in choice.reason


def test_scales_of_classes_go_on_to_the_log_loss_of_many_rows(monkeypatch):
    """Few rows on which they are no better than one width are no reason to give them up."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 3))
    codes = (np.sin(3.0 * X[:, 0]) + 0.3 * rng.normal(size=1500) > 0).astype(int)
    targets = ClassTargets(np.arange(2))
    Y = targets.judged(codes, None)
    ahead = contest.ahead
    monkeypatch.setattr(contest, "ahead", lambda one, rival: 0.0 if len(one.fit.coef) <= MORE_ROWS else ahead(one, rival))
    choice = automatic_choice(X, Y, loss=LeftOutLogLoss.of(targets, codes, Y, None))
    assert {"leave-one-out", "both"} <= {row["relevance"] for row in choice.table}
    first, *others = choice.kernel.length_scale
    assert min(others) > 3.0 * first


@pytest.mark.parametrize(("needed", "kept"), [(2.0, ["learned"]), (3.0, ["plain"])])
def test_learned_scales_of_classes_need_a_clear_lead(needed, kept):
    """Losses whose difference is 2.5 of its standard errors."""
    gain = np.random.default_rng(0).normal(size=400)
    gain += 2.5 * gain.std() / 20.0 - gain.mean()

    def candidate(relevance, losses):
        return SimpleNamespace(relevance=relevance, fit=SimpleNamespace(losses=losses))

    best, plain = [candidate("learned", 1.0 - gain)], [candidate("plain", np.ones(400))]
    assert [one.relevance for one in contest._clearly_better(best, plain, needed)] == kept


@pytest.mark.parametrize("seed", [2, 3])
def test_a_weak_signal_in_few_rows_is_kept(seed):
    """The Bayes rule gains a sixth of the log loss; 150 rows show less than two standard errors of it to most kernels."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(1150, 10))
    logits = np.column_stack([np.zeros(1150), 1.5 * np.sin(1.5 * X[:, 0]), X[:, 1] * X[:, 2]])
    y = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    model = KStoNetClassifier(random_state=0).fit(X[:150], y[:150])
    assert model.predict_proba(X[150:]).std(axis=0).max() > 0.03
    low, high = np.moveaxis(model.predict_proba_interval(X[150:]), 2, 0)
    truth = softmax(logits[150:], axis=1)
    assert ((low <= truth) & (truth <= high)).mean() > 0.7  # intervals of constant probabilities hold less than half of them
