"""The automatic step size: tied to the current curvature, inside the stability limit by construction.

Every sampler knows the largest step, in units of one over the curvature, at which it is stable. The curvature of every
observation is bounded from the noise variances, the weights and the activation slopes, so a fixed fraction of the limit is
always safe; nobody needs to find a step of 5e-13.
"""

from __future__ import annotations

from kstonet.imputation.base import Conditionals, Latents

FRACTION = 0.25  # of the stability limit


def automatic_step_sizes(conditionals: Conditionals, latents: Latents, longest: float) -> Latents:
    """A step for every observation and latent layer, shape (n, 1) each; ``longest`` is the sampler's limit."""
    return tuple(FRACTION * longest / conditionals.curvature(i, latents)[:, None] for i in range(len(latents)))
