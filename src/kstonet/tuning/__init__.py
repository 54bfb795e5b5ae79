"""Choosing: validation parts, kernels, and the screening of many of them by the first layer alone."""
