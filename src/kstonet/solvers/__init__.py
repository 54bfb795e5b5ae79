"""Convex solvers of the layers."""
