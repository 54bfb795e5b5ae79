"""The one writer, with a disk, a folder and a process that really fail."""

import os
import signal
import stat
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

import kstonet
from kstonet._files import destination, open_whole, without_formula, write_whole

# What a process of its own runs first: the writer needs the standard library only, and scikit-learn takes two seconds.
IMPORTED = f"import sys\nsys.path.append({str(Path(kstonet.__file__).parent)!r})\nfrom _files import open_whole, write_whole\n"
resource = pytest.importorskip("resource", reason="permissions, pipes and signals of POSIX")


@pytest.fixture
def old(tmp_path):
    """A file that must not be lost."""
    path = tmp_path / "file"
    path.write_bytes(b"old")
    return path


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def in_child(act):
    """What ``act`` raises, or returns, in a process of its own, without the rights of an administrator."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if os.geteuid() == 0:
                os.setgid(65534)
                os.setuid(65534)
            said = repr(act())
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        os.write(writing, said.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    return said


@pytest.fixture
def shared_folder():
    """A folder that everybody can reach, which pytest's are not."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        yield Path(folder)


# -- what is written ---------------------------------------------------------------------------------------------------------


def test_text_and_bytes_replace_an_older_file(old):
    write_whole(old, "grün\r\n")
    assert old.read_bytes() == "grün\r\n".encode()
    write_whole(str(old), b"\0")
    assert old.read_bytes() == b"\0"
    assert names(old.parent) == ["file"]


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o755])
def test_the_mode_of_an_older_file_stays(old, mode):
    old.chmod(mode)
    write_whole(old, "new")
    assert stat.S_IMODE(old.stat().st_mode) == mode


def test_a_new_file_has_the_usual_mode(tmp_path):
    write_whole(tmp_path / "ours", "")
    (tmp_path / "theirs").write_text("")
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "theirs").stat().st_mode


def test_a_link_stays_a_link(old, tmp_path):
    for name, target in (("link", old), ("dangling", tmp_path / "later")):
        link = tmp_path / name
        link.symlink_to(target)
        write_whole(link, "new")
        assert link.is_symlink()
        assert target.read_text() == "new"


def test_the_longest_name(tmp_path):
    path = tmp_path / ("ü" * 127)  # 254 of 255 bytes
    write_whole(path, "new")
    assert path.read_text() == "new"


# -- devices and pipes -------------------------------------------------------------------------------------------------------


def test_a_device_is_written_to_and_not_replaced():
    before = os.stat("/dev/null")
    write_whole("/dev/null", "gone")
    after = os.stat("/dev/null")
    assert stat.S_ISCHR(after.st_mode)
    assert (before.st_ino, before.st_mode) == (after.st_ino, after.st_mode)


def test_a_pipe_is_written_to_and_not_replaced(tmp_path):
    pipe, got = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    with open_whole(pipe) as file:
        file.write(b"xx")
        file.seek(0)  # formats with an index need it
        file.write(b"through")
    reader.join(timeout=10)
    assert got == [b"through"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert names(tmp_path) == ["pipe"]


def test_a_full_device_says_so():
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full here")
    with pytest.raises(OSError, match="No space left on device"):
        write_whole("/dev/full", "x")


@pytest.mark.parametrize("place", ["/dev/stdout", "/dev/fd/1"])
def test_standard_output_in_a_file_is_continued(place, tmp_path):
    if not os.path.exists(place):
        pytest.skip(f"no {place} here")
    code = f"{IMPORTED}print('a', flush=True)\nwrite_whole({place!r}, 'b\\n')\nprint('c')"
    with open(tmp_path / "log", "a") as log:
        subprocess.run([sys.executable, "-c", code], stdout=log, check=True)
    assert (tmp_path / "log").read_text() == "a\nb\nc\n"
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True)
    assert done.stdout == b"a\nb\nc\n"


# -- failures ----------------------------------------------------------------------------------------------------------------


def test_a_block_that_fails_leaves_the_older_file(old):
    def write_half(path):
        with open_whole(path) as file:
            file.write(b"new")
            raise KeyboardInterrupt

    for path in (old, old.with_name("none")):
        with pytest.raises(KeyboardInterrupt):
            write_half(path)
    assert old.read_bytes() == b"old"
    assert names(old.parent) == ["file"]


def test_a_file_that_the_system_refuses_leaves_the_older_one(old):
    """A limit on the size of files fails in the middle of writing, as a full disk does."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limits[1]))
    try:
        with pytest.raises(OSError, match=rf"File too large: '{old}'"):
            write_whole(old, b"x" * 30_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert old.read_bytes() == b"old"
    assert names(old.parent) == ["file"]


def test_a_full_disk_leaves_the_older_file(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk], capture_output=True)
    if mounted.returncode:
        pytest.skip("no small disk can be mounted here")
    try:
        write_whole(disk / "file", b"old")
        with pytest.raises(OSError, match=rf"No space left on device: '{disk}/file'"):
            write_whole(disk / "file", b"x" * 100_000)
        assert (disk / "file").read_bytes() == b"old"
        assert names(disk) == ["file"]
    finally:
        subprocess.run(["umount", disk], check=True)


def test_a_folder_that_is_not_ours(shared_folder):
    folder = shared_folder / "closed"
    folder.mkdir()
    (folder / "file").write_text("old")
    folder.chmod(0o555)
    for act in (destination, lambda path: write_whole(path, "new")):
        said = in_child(lambda act=act: act(folder / "file"))
        assert "PermissionError: path=" in said
        assert "the folder is not yours to write to" in said
    assert (folder / "file").read_text() == "old"
    folder.chmod(0o755)


def test_a_protected_file_is_not_replaced(shared_folder):
    path = shared_folder / "file"
    path.write_text("old")
    path.chmod(0o444)
    assert "is write-protected; allow writing, or name another file" in in_child(lambda: write_whole(path, "new"))
    assert path.read_text() == "old"
    assert names(shared_folder) == ["file"]


@pytest.mark.parametrize(
    ("place", "error", "message"),
    [
        ("", IsADirectoryError, "is a folder; name a file in it, such as '.*report.html'"),
        ("none/file", FileNotFoundError, "the folder '.*none' does not exist; create it first"),
    ],
)
def test_places_that_cannot_be(tmp_path, place, error, message):
    with pytest.raises(error, match=message):
        destination(tmp_path / place, "report.html")


def test_a_process_killed_in_the_middle_leaves_the_older_file(old):
    code = (
        f"{IMPORTED}import time\n"
        "with open_whole(sys.argv[1]) as file:\n"
        "    file.write(b'x' * 100_000)\n    file.flush()\n    print('half', flush=True)\n    time.sleep(60)\n"
    )
    child = subprocess.Popen([sys.executable, "-c", code, old], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout.readline() == "half\n"
    finally:
        child.kill()
        child.wait()
        child.stdout.close()
    assert child.returncode == -signal.SIGKILL
    assert old.read_bytes() == b"old"
    (left,) = old.parent.glob(".file.*.tmp")
    assert left.stat().st_size == 100_000  # it was really in the middle of writing


def test_an_output_that_is_an_input_is_refused(tmp_path):
    table, link = tmp_path / "table.csv", tmp_path / "link.csv"
    table.write_text("a\n1\n")
    link.symlink_to(table)
    for out in (table, link, tmp_path / "." / "table.csv"):
        with pytest.raises(FileExistsError, match=r"is read as .* name another file"):
            destination(out, inputs=[tmp_path / "other.csv", table])
    assert destination(tmp_path / "new.csv", inputs=[table]) == (tmp_path / "new.csv").resolve()


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
def test_texts_that_start_a_formula(start):
    assert without_formula(f"{start}A1") == f"'{start}A1"
    assert without_formula(f"{start}1{start}cmd|x") == f"'{start}1{start}cmd|x"
    assert without_formula(f"a{start}1") == f"a{start}1"
    assert without_formula("") == ""


@pytest.mark.parametrize("number", ["-1", "+0.5", "-1.5e-300", "-3,14", "12"])
def test_numbers_are_no_formulas(number):
    assert without_formula(number) == number
