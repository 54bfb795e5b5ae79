"""``kstonet fit --checkpoint``: a run that dies goes on when the same command is given again."""

import pytest

from kstonet.storage import container


class DiedError(BaseException):
    """The end of a process, as far as a command can tell."""


def test_a_run_that_dies_goes_on(run, tmp_path, flats, few_folds, monkeypatch):
    table, folder = tmp_path / "flats.csv", tmp_path / "folder"
    flats.to_csv(table, index=False)
    words = ("fit", table, "--target", "price", "--max-iter", 4, "--seed")
    run(*words, 3, "--out", tmp_path / "whole.kstonet")

    write, left = container.write, [3]

    def dying(*content):
        left[0] -= 1
        if left[0] < 0:
            raise DiedError
        write(*content)

    with monkeypatch.context() as patched:
        patched.setattr(container, "write", dying)
        with pytest.raises(DiedError):
            run(*words, 3, "--out", tmp_path / "died.kstonet", "--checkpoint", folder)
    assert not (tmp_path / "died.kstonet").exists()
    run(*words, 3, "--out", tmp_path / "again.kstonet", "--checkpoint", folder)
    whole, again = (run("predict", tmp_path / f"{name}.kstonet", table).stdout for name in ("whole", "again"))
    assert whole == again
    other = run(*words, 4, "--out", tmp_path / "other.kstonet", "--checkpoint", folder, code=2)
    assert "belongs to another run" in other.stderr
