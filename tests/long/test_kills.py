"""Processes killed at random moments: nothing is lost, nothing is damaged, nothing differs."""

import os
from pathlib import Path

import pytest
from sklearn.base import clone

from tests.reliability.dying import MODELS, facts, fitted, survive

pytestmark = [pytest.mark.long, pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that are forked")]

KILLS = 12  # at most, of one fit
FEWEST = 20 if os.environ.get("CI") else 100  # at least, of all


def test_kills_at_random_moments(tmp_path: Path) -> None:
    expected = {name: facts(fitted(clone(model))) for name, model in MODELS.items()}
    kills = fits = 0
    while kills < FEWEST:
        for name, model in MODELS.items():
            folder = tmp_path / f"{fits}"
            found, killed, kept = survive(model, folder, KILLS, seed=fits)
            assert found == expected[name], f"{name}: another model after {killed} kills"
            assert len(kept) == len(set(kept)), f"{name}: a step that was kept is done again"
            assert not [path for path in folder.rglob("*") if path.name.endswith(".tmp")]
            kills, fits = kills + killed, fits + 1
    print(f"{kills} kills of {fits} fits: 0 lost, 0 damaged, 0 different")
