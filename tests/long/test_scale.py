"""The engine at sizes that need minutes: memory really taken, optimality at thousands of rows."""

import subprocess
import sys

import numpy as np
import pytest
from sklearn.svm import SVR

from kstonet import KStoNetRegressor
from kstonet.gram import DenseGram, make_kernel
from kstonet.solvers.svr import solve_svr
from kstonet.tuning import fast

MEASURE = """
import resource, sys
import numpy as np
from kstonet.gram import DenseGram, make_kernel
from kstonet.solvers.svr import solve_svr
n, p = 6000, int(sys.argv[1])
rng = np.random.default_rng(0)
X = rng.normal(size=(n, p))
Y = np.stack([np.sin(X[:, 0]), X[:, 1] * X[:, 0]]) + 0.1 * rng.normal(size=(2, n))
small = DenseGram(X[:300], make_kernel("rbf", X)); solve_svr(small, Y[:, :300].copy(), 10.0, 0.01)  # load every library
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
solve_svr(DenseGram(X, make_kernel("rbf", X)), Y, 10.0, 0.01)
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print((after - before) * 1024 / (8 * n * n))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in kilobytes on Linux only")
@pytest.mark.parametrize("p", [3, 30])
def test_peak_memory(p):
    out = subprocess.run([sys.executable, "-c", MEASURE, str(p)], capture_output=True, text=True, check=True)
    assert float(out.stdout) < 2.2


@pytest.mark.parametrize(("p", "C"), [(3, 10.0), (8, 10.0), (30, 1.0)])
def test_tight_solutions_at_four_thousand_rows(p, C):
    rng = np.random.default_rng(p)
    X = rng.normal(size=(4000, p))
    Y = np.stack([np.sin(X[:, 0]) + X[:, 1], np.cos(X[:, 0] * X[:, 1])]) + 0.1 * rng.normal(size=(2, 4000))
    gram = DenseGram(X, make_kernel("rbf", X))
    solution = solve_svr(gram, Y, C, 0.05, tol=1e-6)
    assert solution.converged.all()
    assert (solution.kkt <= 1e-3 * Y.std(axis=1)).all()
    theirs = SVR(C=C, epsilon=0.05, cache_size=1000).fit(X, Y[0])
    a = np.zeros((1, 4000))
    a[0, theirs.support_] = theirs.dual_coef_[0]
    value, _ = solution.problem.rows(slice(0, 1)).primal(a, gram.product(a))
    assert solution.primal[0] <= value[0] * (1 + 1e-6)
    np.testing.assert_allclose(solution.fitted[0], theirs.predict(X), atol=5e-3)


def test_one_kernel_of_many_rows_may_follow_directions(monkeypatch):
    """An index model: beyond the rows where several kernels are affordable, the one kernel sees the direction."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(700, 5))
    y = np.sin(3 * rows @ np.array([1.0, 1.0, -1.0, 0.5, 0.0]) / 2) + 0.1 * rng.normal(size=700)
    monkeypatch.setattr(fast, "SEVERAL_KERNELS_UP_TO", 300)
    model = KStoNetRegressor(random_state=0, residuals=None).fit(rows, y)
    assert model.tuned_["kernel"].projection is not None
    assert "(directions) errs less" in model.tuning_["reason"]
