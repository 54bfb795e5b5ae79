"""Imputation of the latent values, one sampler per file.

:func:`register_sampler` makes a sampler written elsewhere available to the estimators, as ``sampler="name"``.
"""

from kstonet._registry import require_free
from kstonet.imputation.base import Sampler
from kstonet.imputation.gibbs import SliceGibbs
from kstonet.imputation.hmc import HMC
from kstonet.imputation.mala import MALA
from kstonet.imputation.sghmc import SGHMC

SAMPLERS: dict[str, type[Sampler]] = {"sghmc": SGHMC, "mala": MALA, "hmc": HMC, "gibbs": SliceGibbs}


def register_sampler(name: str, sampler: type[Sampler]) -> None:
    """Make a sampler available as ``sampler="name"``.

    Parameters
    ----------
    name : str
        The name that estimators are given.
    sampler : type
        A subclass of :class:`Sampler`. Model files need nothing of it: a stored model does not draw latent values.

    Raises
    ------
    ValueError
        Where the name belongs to another sampler.

    Examples
    --------
    >>> from kstonet.imputation import MALA, SAMPLERS, register_sampler
    >>> register_sampler("langevin", MALA)
    >>> SAMPLERS.pop("langevin").__name__
    'MALA'
    """
    require_free("sampler", name, SAMPLERS.get(name), sampler)
    SAMPLERS[name] = sampler


__all__ = ["HMC", "MALA", "SAMPLERS", "SGHMC", "Sampler", "SliceGibbs", "register_sampler"]
