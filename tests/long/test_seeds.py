"""No seed may diverge on the paper's measurement-error data (Section 3.2), where the published code does."""

import numpy as np
import pytest

from kstonet import KStoNetRegressor
from kstonet.demo import measurement_error_data


@pytest.mark.parametrize(("sizes", "seeds"), [((5,), 20), ((20, 20, 20), 5)])
def test_worst_seed_is_close_to_the_median(sizes, seeds):
    X, y = measurement_error_data(1000)
    errors = []
    for seed in range(seeds):
        model = KStoNetRegressor(sizes, activation="tanh", C=1.0, max_iter=50, random_state=seed).fit(X[:500], y[:500])
        assert sum(record["n_shrinks"] for record in model.history_) == 0
        errors.append(np.mean((y[500:] - model.predict(X[500:])) ** 2))
    assert max(errors) <= 1.15 * np.median(errors)
