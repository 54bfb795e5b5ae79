"""The automatic step size: tied to the current curvature, inside the stability limit by construction.

In linear analysis the momentum update is stable while step·curvature < 4 - 2·friction. The curvature of every observation is
bounded from the noise variances, the weights and the activation slopes, so a fixed fraction of the limit is always safe;
nobody needs to find a step of 5e-13.
"""

from __future__ import annotations

from kstonet.imputation.base import Conditionals, Latents

FRACTION = 0.25  # of the stability limit


def automatic_step_sizes(conditionals: Conditionals, latents: Latents, friction: float) -> Latents:
    """A step for every observation and latent layer, shape (n, 1) each."""
    limit = FRACTION * (4.0 - 2.0 * friction)
    return tuple(limit / conditionals.curvature(i, latents)[:, None] for i in range(len(latents)))
