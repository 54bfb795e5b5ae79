"""Places that names have moved from still work, warn, and name the new place."""

import importlib
import subprocess
import sys

import pytest

import experiments.baselines
import kstonet.tables

MOVED = {"kstonet.baselines": experiments.baselines, "kstonet.cli.encoding": kstonet.tables}


@pytest.mark.parametrize("old", MOVED)
def test_an_old_place_warns_and_forwards(old):
    sys.modules.pop(old, None)
    new = MOVED[old]
    with pytest.warns(DeprecationWarning, match=rf"{old} has moved to {new.__name__}.*import it from there") as caught:
        module = importlib.import_module(old)
    assert caught[0].filename != module.__file__  # the line that imports, not the module itself
    for name in module.__all__:
        assert getattr(module, name) is getattr(new, name)


def test_baselines_without_the_experiments_say_where_they_are():
    """As in an installed package: the experiments are not importable there."""
    code = "import sys; sys.modules['experiments'] = None; import kstonet.baselines"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "ImportError: kstonet.baselines has moved to experiments.baselines" in done.stderr
    assert "pip install --editable" in done.stderr
