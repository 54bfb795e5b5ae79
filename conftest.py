"""Doctests are collected from src/; files that need an extra are left out where the extra is not installed."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("torch") else ["src/kstonet/gram/torch.py"]
collect_ignore += [] if all(map(find_spec, ("typer", "rich", "pandas", "safetensors"))) else ["src/kstonet/cli"]
