"""The automatic step size, a fixed fraction of the stability limit.

Every sampler has a largest stable step, in units of one over the curvature. The curvature at every observation is bounded by
means of the noise variances, the weights and the activation slopes, so a fixed fraction of the limit is always stable, and
users need not search for a step size (the paper uses values down to 5e-13).
"""

from __future__ import annotations

from kstonet.imputation.base import Conditionals, Latents

FRACTION = 0.25  # of the stability limit


def automatic_step_sizes(conditionals: Conditionals, latents: Latents, longest: float) -> Latents:
    """A step for every observation and latent layer, shape (n, 1) each; ``longest`` is the sampler's limit."""
    return tuple(FRACTION * longest / conditionals.curvature(i, latents)[:, None] for i in range(len(latents)))
