"""A chain goes on as long as rows that are hidden from it gain."""

import numpy as np
import pytest

from kstonet.iro import IROState
from kstonet.resting import helpful_iterations

NOISE = np.random.default_rng(0).normal(size=50)


def chain_of(*means):
    """The start, the later states, and losses of fifty rows with these means."""
    states = [IROState(iteration, None, (), {}) for iteration in range(len(means))]
    spread = 0.1 * (NOISE - NOISE.mean())
    return states[0], iter(states[1:]), lambda state: means[state.iteration] + spread * (1 + 0.1 * state.iteration)


@pytest.mark.parametrize(("most", "found"), [(10, 3), (2, 2)])
def test_iterations_help_as_long_as_hidden_rows_gain(most, found):
    start, chain, losses = chain_of(1.0, 0.8, 0.6, 0.5, 0.7, 0.1)
    assert helpful_iterations(chain, start, losses, most) == found


def test_a_gain_within_a_standard_error_is_luck():
    """The differences of these losses have a standard error of 0.0014."""
    for gain, found in ((0.001, 0), (0.002, 1)):
        start, chain, losses = chain_of(1.0, 1.0 - gain, 2.0)
        assert helpful_iterations(chain, start, losses, 10) == found
