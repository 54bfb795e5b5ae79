"""Imputation of the latent values, one sampler per file."""
