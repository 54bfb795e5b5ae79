"""Imputation of the latent values, one sampler per file."""

from kstonet.imputation.base import Sampler
from kstonet.imputation.gibbs import SliceGibbs
from kstonet.imputation.hmc import HMC
from kstonet.imputation.mala import MALA
from kstonet.imputation.sghmc import SGHMC

SAMPLERS: dict[str, type[Sampler]] = {"sghmc": SGHMC, "mala": MALA, "hmc": HMC, "gibbs": SliceGibbs}
