"""Intervals from few residuals, as a statistic."""

import numpy as np

from kstonet.uncertainty.conformal import ConformalFactor
from kstonet.uncertainty.noise_model import NoiseModel, left_out_variances


def test_scores_of_few_residuals_cover():
    """Coverage of 90 % intervals from 20 residuals, with noise, scale and growth fitted to them: 100 sets, 300 new rows each.

    The standard error is about 0.007. Scores by the fitted variances themselves cover some three per cent too little.
    """
    rng = np.random.default_rng(0)
    covered = {"own": [], "left out": []}
    for _ in range(100):
        residuals, means, new = rng.normal(size=(20, 1)), rng.normal(size=(20, 1)), rng.normal(size=(300, 1))
        first, other = (np.full((20, 1), value) for value in (0.1, 0.01))
        model = NoiseModel.of_residuals(residuals, means, first, other)
        at = model.variances(new, np.full((300, 1), 0.1), np.full((300, 1), 0.01))
        for name, variances in (
            ("own", model.variances(means, first, other)),
            ("left out", left_out_variances(model.left_out(residuals, means, first, other), means, first, other)),
        ):
            factor = ConformalFactor.of(residuals, np.sqrt(variances), model.df)(np.array([0.9]))
            covered[name].append((np.abs(rng.normal(size=(300, 1))) <= factor * np.sqrt(at)).mean())
    assert np.mean(covered["left out"]) > 0.88
    assert np.mean(covered["own"]) < np.mean(covered["left out"]) - 0.01
