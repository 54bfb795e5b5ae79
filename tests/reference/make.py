"""Write the stored answers and model files anew: ``python -m tests.reference.make NAME ...`` (all without a name).

Do so only for a change that is meant to change predictions, and say in its commit which and why.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np

import kstonet
from tests.reference.cases import CASES, answers, fitted

STORE = Path(__file__).parent / "stored"


def main(names: list[str]) -> None:
    """Store the answers of some cases, and their model files."""
    STORE.mkdir(exist_ok=True)
    for name in names or CASES:
        model, X = fitted(CASES[name])
        np.savez_compressed(STORE / f"{name}.npz", **answers(model, X))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # a schedule is not stored
            kstonet.save(model, STORE / f"{name}.kstonet")
        print(name)


if __name__ == "__main__":
    main(sys.argv[1:])
