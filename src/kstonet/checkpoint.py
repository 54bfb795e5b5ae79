"""Where a run stands: kept in a folder after every iteration, so that a run that dies goes on when it is started again.

A run asks a :class:`Run` for what it has done already, and tells it what it has done; the plain one keeps nothing. A
:class:`Checkpoint` answers from files. Every file is written whole or not at all, read back, and never changed: later steps
add files, and remove those of steps that a later file has made superfluous. Nothing depends on when a process dies.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from itertools import count
from pathlib import Path
from typing import Any

from kstonet._files import remove_temporary
from kstonet.iro import IRORecord, IROState
from kstonet.network import Network
from kstonet.storage import container
from kstonet.storage.errors import ModelFileError
from kstonet.storage.values import Decoder, Encoder, NotStorableError

try:
    import fcntl
except ImportError:  # Windows, where two runs are not kept from sharing a folder
    fcntl = None  # type: ignore[assignment]

SUFFIX = ".state"
PLAN, END = "run", "trained"  # what the folder belongs to, and the result


@dataclass(frozen=True)
class Iterate:
    """One iterate of a training that predictions average.

    Parameters
    ----------
    chain : int
        Number of the chain.
    state : IROState
        Where the chain stood.
    history : list of dict
        All records of the training so far.
    stop : str or None
        Name of the :class:`~kstonet.observers.Stop` that ended the chain here.
    """

    chain: int
    state: IROState
    history: list[dict[str, Any]]
    stop: str | None


class Run:
    """A run that keeps nothing: whatever is asked for is computed."""

    def within(self, step: str) -> Run:
        """The run of a step that has steps of its own."""
        return self

    def value(self, step: str, compute: Callable[[], Any]) -> Any:
        """The result of a step: a value that a file can hold. Steps within it are forgotten when it is known."""
        return compute()

    def states(self, step: str, likes: Sequence[IROState], compute: Callable[[], list[IROState]]) -> list[IROState]:
        """The result of a step: one state for each of ``likes``, from which it differs in what the step has changed."""
        return compute()

    def iterations(
        self, step: str, start: Sequence[IROState], loop: Callable[[Sequence[IROState]], Iterator[list[IROState]]]
    ) -> Iterator[list[IROState]]:
        """The states that a loop yields after ``start``, those that are known first."""
        return loop(start)

    def iterates(self, like: IROState) -> list[Iterate]:
        """The iterates of a training that are kept."""
        return []

    def keep(self, iterate: Iterate, like: IROState, n_average: int) -> None:
        """Keep an iterate, and forget those of its chain that predictions will no longer average."""

    def result(self) -> Any:
        """The result of the whole run, once it is known."""
        return None

    def finish(self, result: Any) -> None:
        """Keep the result of the whole run instead of its steps."""


class Checkpoint(Run):
    """A run whose steps are files of a folder.

    Parameters
    ----------
    folder : Path
        The folder.
    plan : str
        What the run does, see :func:`open_run`, as a checksum; every file says it.
    prefix : str
        Beginning of the names of the files.
    """

    def __init__(self, folder: Path, plan: str, prefix: str = "") -> None:
        self._folder, self._plan, self._prefix = folder, plan, prefix

    def within(self, step: str) -> Run:
        """The same folder, with names of their own."""
        return Checkpoint(self._folder, self._plan, f"{self._prefix}{step}_")

    def value(self, step: str, compute: Callable[[], Any]) -> Any:
        """From the file, or computed and stored; what no file can hold is computed again."""
        content = self._read(step)
        if content is None:
            value = compute()
            if not self._write(step, lambda encoder: encoder.encode(value)):
                return value
        else:
            value = content[1].decode(content[0])
        self._forget(f"{step}_")
        return value

    def states(self, step: str, likes: Sequence[IROState], compute: Callable[[], list[IROState]]) -> list[IROState]:
        """From the file, or computed and stored."""
        known = self._states(step, likes)
        if known is None:
            known = compute()
            self._write_states(step, known, likes)
        return known

    def iterations(
        self, step: str, start: Sequence[IROState], loop: Callable[[Sequence[IROState]], Iterator[list[IROState]]]
    ) -> Iterator[list[IROState]]:
        """From the files, then from the loop."""
        states: Sequence[IROState] = start
        for number in count():
            known = self._states(f"{step}-{number:06d}", start)
            if known is None:
                break
            yield known
            states = known
        for later, new in enumerate(loop(states), number):
            self._write_states(f"{step}-{later:06d}", new, start)
            yield new

    def _states(self, step: str, likes: Sequence[IROState]) -> list[IROState] | None:
        content = self._read(step)
        if content is None:
            return None
        nodes, decoder = content
        states = [_decoded(node, like, decoder) for node, like in zip(nodes["states"], likes, strict=True)]
        _retrace(likes[0], nodes["trails"])
        return states

    def _write_states(self, step: str, states: Sequence[IROState], likes: Sequence[IROState]) -> None:
        def content(encoder: Encoder) -> dict[str, Any]:
            nodes = [_encoded(state, like, encoder) for state, like in zip(states, likes, strict=True)]
            return {"states": nodes, "trails": _trails(likes[0])}

        self._write(step, content, required=True)

    def iterates(self, like: IROState) -> list[Iterate]:
        """From the files, in the order of the training."""
        kept, trails = [], None
        for path in self._files("chain"):
            nodes, decoder = self._loaded(path)
            state = _decoded(nodes["state"], like, decoder)
            kept.append(Iterate(nodes["chain"], state, decoder.decode(nodes["history"]), nodes["stop"]))
            trails = nodes["trails"]
        if trails is not None:
            _retrace(like, trails)
        return kept

    def keep(self, iterate: Iterate, like: IROState, n_average: int) -> None:
        """Write a file, then remove the oldest."""

        def content(encoder: Encoder) -> dict[str, Any]:
            return {
                "chain": iterate.chain,
                "state": _encoded(iterate.state, like, encoder),
                "history": encoder.encode(iterate.history),
                "stop": iterate.stop,
                "trails": _trails(like),
            }

        chain = f"chain{iterate.chain:03d}-"
        self._write(f"{chain}{iterate.state.iteration:06d}", content, required=True)
        for path in self._files(chain)[:-n_average]:
            path.unlink()

    def result(self) -> Any:
        """From the file."""
        content = self._read(END)
        return None if content is None else content[1].decode(content[0])

    def finish(self, result: Any) -> None:
        """Write a file, then remove all others; where no file can hold the result, they stay."""
        if self._write(END, lambda encoder: encoder.encode(result)):
            for path in self._files(""):
                if path.stem not in (PLAN, END):
                    path.unlink()

    # -- files -----------------------------------------------------------------------------------------------------------------

    def _path(self, step: str) -> Path:
        return self._folder / f"{self._prefix}{step}{SUFFIX}"

    def _files(self, start: str) -> list[Path]:
        start = self._prefix + start
        return sorted(path for path in self._folder.glob(f"*{SUFFIX}") if path.name.startswith(start))

    def _forget(self, start: str) -> None:
        for path in self._files(start):
            path.unlink(missing_ok=True)

    def _read(self, step: str) -> tuple[Any, Decoder] | None:
        path = self._path(step)
        return self._loaded(path) if path.exists() else None

    def _loaded(self, path: Path) -> tuple[Any, Decoder]:
        description, tensors = container.read(path)
        if description.get("plan") != self._plan:
            raise ModelFileError(f"path={str(path)!r} belongs to another run; give every run a folder of its own.")
        return description["content"], Decoder(tensors)

    def _write(self, step: str, content: Callable[[Encoder], Any], *, required: bool = False) -> bool:
        """Write a file and read it back; whether there is one."""
        encoder, path = Encoder(), self._path(step)
        try:
            node = content(encoder)
        except NotStorableError as error:
            if required:
                raise TypeError(
                    f"checkpoint={str(self._folder)!r}: a file cannot hold {error}. Register its class with "
                    "kstonet.persistence.storable, or fit with checkpoint=None."
                ) from error
            return False
        container.write(path, {"plan": self._plan, "content": node}, encoder.tensors)
        container.read(path)  # its checksum is right
        return True


@contextlib.contextmanager
def open_run(folder: str | os.PathLike[str] | None, plan: dict[str, dict[str, Any]]) -> Iterator[Run]:
    """The run of a folder, which is made if it does not exist; without a folder, one that keeps nothing.

    Parameters
    ----------
    folder : str, path or None
    plan : dict of dict
        What the run does and with what, as names and values under headings ("parameters", "data"); values that no file can
        hold are known by their names. A folder that belongs to another plan is refused.

    Yields
    ------
    Run

    Examples
    --------
    >>> import tempfile
    >>> from kstonet.checkpoint import open_run
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for _ in range(2):
    ...         with open_run(folder, {"parameters": {"C": 1.0}}) as run:
    ...             print(run.value("answer", lambda: print("computing") or 42))
    computing
    42
    42
    """
    if folder is None:
        yield Run()
        return
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    prints = {part: {name: fingerprint(value) for name, value in values.items()} for part, values in plan.items()}
    with _alone(path):
        remove_temporary(path)
        known = path / f"{PLAN}{SUFFIX}"
        if known.exists():
            _check_plan(path, container.read(known)[0].get("plan"), prints)
        else:
            container.write(known, {"plan": prints}, {})
        yield Checkpoint(path, fingerprint(prints))


def fingerprint(value: Any) -> str:
    """What tells values apart: a checksum, or the name of what no file can hold.

    Examples
    --------
    >>> fingerprint(1.0) == fingerprint(1.0), fingerprint(1.0) == fingerprint(1), fingerprint(len)
    (True, False, 'builtins.len')
    """
    if hasattr(value, "get_state"):  # a random state
        value = value.get_state()
    encoder = Encoder()
    try:
        node = encoder.encode(value)
    except NotStorableError:
        named = value if hasattr(value, "__qualname__") else type(value)
        return f"{named.__module__}.{named.__qualname__}"
    return container.checksum(container.json_text(node), encoder.tensors)


def _check_plan(folder: Path, known: Any, plan: dict[str, dict[str, str]]) -> None:
    if known == plan:
        return
    known = known if isinstance(known, dict) else {}
    unlike = [
        f"{part} {', '.join(sorted(names))}"
        for part, values in plan.items()
        if (names := {name for name, value in values.items() if known.get(part, {}).get(name) != value})
    ]
    raise ValueError(
        f"checkpoint={str(folder)!r} belongs to another run, which differs in {'; '.join(unlike) or 'what it does'}. Go on "
        "with the same data, parameters and version of kstonet, or name another folder, or delete this one."
    )


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Refuse a folder that another process is using; the system forgets the claim of a process that has died."""
    with open(folder / "lock", "wb") as file:
        if fcntl is not None:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise ValueError(
                    f"checkpoint={str(folder)!r} is in use by another run; wait for it, or name another folder."
                ) from error
        yield


# -- states ------------------------------------------------------------------------------------------------------------------
# A state shares most of its first layer with the network that the run started from: Grams, maps, parameters. What is the same
# object there is not stored; a later process makes it anew from the same problem.


def _changed(new: Any, like: Any) -> dict[str, Any]:
    """The fields of a dataclass that are other objects than those of another one."""
    values = ((field.name, getattr(new, field.name)) for field in fields(new))
    return {name: value for name, value in values if value is not getattr(like, name)}


def _encoded(state: IROState, like: IROState, encoder: Encoder) -> dict[str, Any]:
    parts = _changed(state, like)
    if parts.pop("network", None):
        parts["uppers"] = state.network.uppers
    if "record" in parts:
        parts["record"] = asdict(parts["record"])
    first = _changed(state.network.first, like.network.first)
    return {"state": encoder.encode(parts), "first": encoder.encode(first)}


def _decoded(node: dict[str, Any], like: IROState, decoder: Decoder) -> IROState:
    parts, changed = decoder.decode(node["state"]), decoder.decode(node["first"])
    first: Any = replace(like.network.first, **changed)  # type: ignore[type-var]
    uppers = parts.pop("uppers", like.network.uppers)
    if "record" in parts:
        parts["record"] = IRORecord(**parts["record"])
    return replace(like, network=Network((first, *uppers)), **parts)


def _trails(like: IROState) -> list[Any]:
    """How the factors that the Grams hold came about: a solver takes one that is at hand, whatever its shift."""
    return [list(gram.trail) for gram in _grams(like)]


def _retrace(like: IROState, trails: list[Any]) -> None:
    for gram, trail in zip(_grams(like), trails, strict=True):
        if list(gram.trail) != trail:
            gram.retrace(tuple(trail))


def _grams(like: IROState) -> list[Any]:
    groups = getattr(like.network.first, "groups", ())
    return [group.gram for group in groups if hasattr(group.gram, "trail")]
