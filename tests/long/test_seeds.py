"""No seed may diverge on the paper's measurement-error data (Section 3.2), where the published code does."""

import numpy as np
import pytest

from kstonet import KStoNetRegressor
from kstonet.datasets import make_measurement_error


@pytest.mark.parametrize("sizes", [(5,), (20, 20, 20)])
def test_worst_of_twenty_seeds_is_close_to_the_median(sizes):
    X, y = make_measurement_error(1000, random_state=0)
    errors = []
    for seed in range(20):
        model = KStoNetRegressor(sizes, "tanh", tuning="none", C=1.0, max_iter=50, residuals=None, random_state=seed).fit(
            X[:500], y[:500]
        )
        assert sum(record["n_shrinks"] for record in model.history_) == 0
        errors.append(np.mean((y[500:] - model.predict(X[500:])) ** 2))
    assert max(errors) <= 1.15 * np.median(errors)
