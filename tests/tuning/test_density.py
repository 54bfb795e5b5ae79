"""Width and ridge at the density of all rows, against the errors of regressions on all of them."""

from dataclasses import replace

import numpy as np
import pytest

from kstonet import KStoNetRegressor
from kstonet.gram import planning
from kstonet.gram.kernels import RBF, Laplacian
from kstonet.tuning import density, fast
from kstonet.tuning.choice import Choice
from kstonet.tuning.density import at_density, neighbourhoods
from kstonet.tuning.screening_ridge import ridge_fit

RNG = np.random.default_rng(0)
N, ROWS = 700, 300  # all rows, and those of a neighbourhood
X = RNG.uniform(-3, 3, size=(N, 1))
Y = np.sin(8 * X) + 0.1 * RNG.normal(size=(N, 1))
WIDE = Choice((RBF(length_scale=(1.5,), gamma=0.5),), (1.0,), (1.0,), (1.0,), True, [], "few rows")


@pytest.fixture(autouse=True)
def small_neighbourhoods(monkeypatch):
    monkeypatch.setattr(density, "ROWS", ROWS)


def error(choice):
    return ridge_fit(np.asarray(choice.kernel(X, X)), Y, choice.ridges[0]).score


def test_structure_that_few_rows_do_not_show_is_found():
    found = at_density(WIDE, X, Y, None)
    assert found.kernel.length_scale[0] < 0.7
    assert error(found) < 0.05 < 0.5 < error(WIDE)
    assert "density of all rows" in found.reason
    assert len(found.table) == 1


def test_widths_that_were_given_stay():
    given = Choice((RBF(length_scale=(0.2,), gamma=0.5),), (30.0,), (1.0,), (1.0,), True, [], "few rows")
    found = at_density(given, X, Y, None, widths=False)
    assert found.kernel == given.kernel
    assert found.ridges[0] < given.ridges[0]
    assert error(found) < error(given)


def test_what_is_good_already_stays():
    good = at_density(WIDE, X, Y, None)
    again = at_density(good, X, Y, None)
    assert error(again) < 1.1 * error(good)
    nothing = Choice(WIDE.kernels, (1e3,), (1.0,), (1.0,), False, [], "no signal")
    assert at_density(nothing, X, Y, None) is nothing


def test_a_climb_takes_the_best_step_while_it_gains_and_none_back(monkeypatch):
    """Beside a search that judges every place around, from the first to the last."""
    tried = []
    exact = density.ridge_fit

    def noted(K, Y, ridge, *given, **options):
        tried.append((K[0, 1], ridge, K.shape))
        return exact(K, Y, ridge, *given, **options)

    places = neighbourhoods(WIDE.kernel, X, Y, None)

    def score(width, ridge):
        kernel = RBF(length_scale=(1.5 * density.WIDTH**width,), gamma=0.5)
        fits = [ridge_fit(np.asarray(kernel(one.X, one.X)), one.Y, density.RIDGE**ridge) for one in places]
        return np.mean([fit.score for fit in fits])

    here, best = (0, 0), score(0, 0)
    for _ in range(density.MOST_STEPS):
        around = [(here[0] + step, here[1] + other) for step, other in ((0, 1), (0, -1), (1, 0), (-1, 0))]
        scores = [score(*place) for place in around]
        if not min(scores) < (1.0 - density.GAIN) * best:
            break
        here, best = around[int(np.argmin(scores))], min(scores)
    monkeypatch.setattr(density, "ridge_fit", noted)
    found = at_density(WIDE, X, Y, None)
    assert found.kernel.length_scale[0] == pytest.approx(1.5 * density.WIDTH ** here[0])
    assert found.ridges[0] == pytest.approx(density.RIDGE ** here[1])
    assert len(tried) == density.NEIGHBOURHOODS * (1 + 4 + 3 * (min(sum(map(abs, here)) + 1, density.MOST_STEPS) - 1))


def test_the_result_does_not_depend_on_the_threads():
    one, two = (at_density(WIDE, X, Y, np.ones(N), n_jobs=n_jobs) for n_jobs in (1, 2))
    assert one.kernels == two.kernels
    assert one.noises == two.noises


def test_neighbourhoods_are_those_of_the_kernel():
    place = neighbourhoods(WIDE.kernel, X, Y, np.arange(N) + 1.0)[0]
    assert len(place.X) == len(place.weights) == ROWS
    inside = (X[:, 0] >= place.X.min()) & (X[:, 0] <= place.X.max())
    assert inside.sum() == pytest.approx(ROWS, abs=2)  # an interval of the line


@pytest.mark.parametrize(("largest", "solver", "seed"), [(500, "low_rank", 0), (500, "low_rank", 1), (20_000, "dense", 2)])
def test_fits_of_many_rows_use_it(monkeypatch, seed, largest, solver):
    monkeypatch.setattr(planning, "LARGEST_FACTOR", largest)
    monkeypatch.setattr(fast, "DENSER", 500)
    model = KStoNetRegressor(kernel="rbf", random_state=seed, residuals=None).fit(X, Y[:, 0])
    assert model.plan_.solver == solver
    assert "density of all rows" in model.tuning_["reason"]
    assert model.score(X, np.sin(8 * X[:, 0])) > 0.97


def test_shares_belong_to_their_kernels():
    """Kernels that were chosen together keep their order, whichever is best where rows are dense."""
    kernels = (RBF(length_scale=(1.0,)), Laplacian(length_scale=(0.1,)))
    together = Choice(kernels, (0.1, 0.1), (1.0, 1.0), (0.3, 0.3), True, [], shares=(0.75, 0.25))
    found = at_density(together, X, Y, None)
    assert [type(kernel) for kernel in found.kernels] == [RBF, Laplacian]
    assert found.shares == (0.75, 0.25)
    for shares in ((), (1.0,)):
        alone = at_density(replace(together, shares=shares), X, Y, None)
        assert alone.noises == tuple(sorted(alone.noises))
        assert alone.shares == shares
