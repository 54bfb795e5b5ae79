"""Prediction intervals cover what they say, as a statistic.

Coverage of a new row, averaged over 25 training sets of 300 rows and 1,000 test rows each. Over training sets the standard
deviation is about 0.013, so that of the mean is below 0.003: the bounds (nominal ± 0.02) are wider than the bias we accept
(0.01) by more than three standard errors; a correct build fails less than once in a thousand runs with other seeds.
"""

import numpy as np
import pytest

from kstonet import KStoNetRegressor
from kstonet.datasets import make_measurement_error
from kstonet.metrics import coverage


@pytest.mark.parametrize("C", [1.0, 10.0])
def test_default_intervals_cover(C):
    found = {0.8: [], 0.9: [], 0.95: []}
    for seed in range(25):
        X, y = make_measurement_error(1300, random_state=seed)
        model = KStoNetRegressor(tuning="none", C=C, max_iter=25, random_state=seed).fit(X[:300], y[:300])
        bounds = model.predict_interval(X[300:], list(found))
        for i, level in enumerate(found):
            found[level].append(coverage(y[300:], bounds[:, :, i]))
    for level, values in found.items():
        assert abs(np.mean(values) - level) < 0.02 + 0.01 * (level < 0.95)
