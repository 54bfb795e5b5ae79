"""Which Gram suits a training, and what it will cost: decided before anything is allocated."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from joblib import cpu_count

from kstonet._records import storable
from kstonet._words import readable_bytes
from kstonet.gram.blocks import BLOCK_BYTES
from kstonet.gram.dense import DenseGram
from kstonet.gram.devices import memory_limit
from kstonet.gram.footprint import (
    Workload,
    chosen_bytes,
    dense_bytes,
    device_bytes,
    latent_bytes,
    matrices_bytes,
    passing_bytes,
)
from kstonet.gram.iterative import IterativeGram
from kstonet.gram.iterative_options import Iterative
from kstonet.gram.low_rank import LowRankGram
from kstonet.gram.low_rank_options import LowRank

LARGEST_FACTOR = 20_000  # rows up to which a squared loss factors the whole matrix, for a few minutes on two cores
LARGEST_PASSING = 200_000  # rows up to which a GPU computes all kernel values again and again, for one to five minutes
RATE = 12e9  # float64 operations a second of one core, in matrix products of moderate size
KERNEL_VALUE = 25e-9  # seconds, beside its products
WIDENING = 1.0e-9  # seconds to make a stored float32 number a float64
DISK_RATE = 5e8  # bytes a second that are read from files
LATENT_STEP = 60e-9  # seconds for a step of the sampler in one unit of one row
CLEARLY = 1.2  # ratio of two estimates that differ by more than they are wrong
MOST_PARALLEL = 0.7  # share of the work that further cores take
SOLVED = 12  # arrays of rows × units while the regressions of a low-rank Gram are solved and corrected
PASSES = 40  # over the kernel matrix, of conjugate gradients in an iteration
GPU_CORES = 500.0  # cores whose matrix work a GPU does
FUSED = 4.0  # how much faster it is where kernel values do not pass through its memory


@storable()
@dataclass(frozen=True)
class Plan:
    """How a training holds its kernel matrix, why, and what that costs.

    Parameters
    ----------
    solver : str
        "dense", "low_rank", "iterative", or the name of a Gram from outside.
    reason : str
        Why.
    rows, features : int
        Size of the training data.
    bytes : int
        Estimated peak of the memory that a fit takes beside X and y. Where a choice decides how many kernels share the first
        layer, this is the estimate with as many as are allowed.
    seconds : float
        Estimated time of a training with intervals on this machine, when it has nothing else to do; right within a factor of
        two or three.
    rank : int, optional
        Landmarks of a low-rank Gram, or of the one that preconditions an iterative one: at most so many before a fit, the
        number taken after it.
    leaf_rows : int, optional
        Rows of its largest leaf; 0 without leaves.
    trace_left_out : float, optional
        After a fit: share of the trace of the kernel matrix that the landmarks leave out. Leaves hold their part of it.
    dual_gap : float, optional
        After a fit with the ε-insensitive loss: a bound of how far the dual value of the worst unit is from the optimum with
        the true kernel, relative to the primal value. None where it was too expensive to compute.
    filed_bytes : int
        Bytes of factor, leaves and inverses that are in files, where memory does not hold them and there is a folder for them.
    least_bytes : int, optional
        Before a fit that chooses its kernels: the estimate with one of them.

    Examples
    --------
    >>> from kstonet.gram.footprint import Workload
    >>> plan = plan_training(100_000, 10, Workload(squared=True, units=20, averages=6), iterations=12, max_memory=8e9)
    >>> plan.solver, plan.approximate, plan.rank
    ('low_rank', True, 1000)
    """

    solver: str
    reason: str
    rows: int
    features: int
    bytes: int
    seconds: float
    rank: int | None = None
    leaf_rows: int | None = None
    trace_left_out: float | None = None
    dual_gap: float | None = None
    least_bytes: int | None = None
    filed_bytes: int = 0

    @property
    def approximate(self) -> bool:
        """Whether the training is on a matrix that is not quite the kernel's."""
        return self.rank is not None and self.solver != Iterative.name

    def __str__(self) -> str:
        """The plan in words."""
        size = f"about {readable_bytes(self.bytes)}"
        if self.least_bytes is not None and self.least_bytes < self.bytes / CLEARLY:
            size = f"{readable_bytes(self.least_bytes)} (one kernel) to {readable_bytes(self.bytes)} (several)"
        text = f"{self.solver}: {self.reason}; {size} and {_readable_seconds(self.seconds)}"
        if self.rank is not None:
            most = "at most " if self.trace_left_out is None else ""
            what = "exact within leaves" if self.approximate else "leaves"
            leaves = f", {what} of {self.leaf_rows:,} rows" if self.leaf_rows else ""
            text += f"; {most}{self.rank:,} landmarks{leaves}"
        if self.filed_bytes:
            text += f"; {readable_bytes(self.filed_bytes)} in files"
        if self.trace_left_out is not None:
            text += f"; the landmarks leave out {self.trace_left_out:.2g} of the trace"
        if self.dual_gap is not None:
            text += f"; within {self.dual_gap:.2g} of the optimum with the true kernel"
        return text

    def after(self, grams: Iterable[Any]) -> Plan:
        """The plan with what the Grams turned out to be: of several, the one that leaves out most."""
        near = (gram.near if isinstance(gram, IterativeGram) else gram for gram in grams)
        made = [gram for gram in near if isinstance(gram, LowRankGram)]
        if not made or self.rank is None:
            return self
        worst = max(made, key=lambda gram: gram.trace_left_out)
        return replace(self, rank=worst.rank, leaf_rows=worst.leaf_rows, trace_left_out=worst.trace_left_out)


def dense_fits(n: int, max_memory: float | None, *, squared: bool = False, groups: int = 1, dtype: str = "float64") -> bool:
    """Whether the matrices of a training fit into the memory."""
    return matrices_bytes(n, squared=squared, groups=groups, dtype=dtype) <= memory_limit(max_memory)


def choose_solver(
    n: int,
    *,
    pairwise: bool = False,
    squared: bool = False,
    device: str | None = None,
    dtype: str = "float64",
    max_memory: float | None = None,
) -> tuple[str, str]:
    """The Gram that ``solver="auto"`` stands for, and the reason.

    Parameters
    ----------
    n : int
        Training rows.
    pairwise : bool
        Whether the kernel matrix is given.
    squared : bool
        Whether the first layer has a squared loss.
    device, dtype, max_memory
        As in :func:`kstonet.gram.make_gram`.

    Examples
    --------
    >>> choose_solver(2_000)[0], choose_solver(200_000, squared=True)[0]
    ('dense', 'low_rank')
    """
    if pairwise:
        return "dense", "the kernel matrix is given"
    if device is not None:
        needed, most = DenseGram.bytes_needed(n, dtype), memory_limit(max_memory, device)
        if needed <= most:
            return "dense", f"device={device!r} holds the whole matrix"
        would = f"the matrix of {n:,} rows would take {readable_bytes(needed)} of device={device!r}"
        reason = f"{would}, of {readable_bytes(most)} that may be taken"
        if squared and n <= LARGEST_PASSING and device.startswith("cuda"):  # where products are fused
            return "iterative", f"{reason}; kernel values are computed anew for every product"
        return "low_rank", reason
    if squared and n > LARGEST_FACTOR:
        return "low_rank", f"{n:,} rows are more than the {LARGEST_FACTOR:,} whose matrix is factored"
    if not dense_fits(n, max_memory, squared=squared, dtype=dtype):
        needed = matrices_bytes(n, squared=squared, dtype=dtype)
        limit = readable_bytes(memory_limit(max_memory))
        return "low_rank", f"the dense matrix of {n:,} rows would take {readable_bytes(needed)}, of {limit} that may be taken"
    return "dense", f"the matrix of {n:,} rows fits into memory"


def plan_training(
    n: int,
    p: int,
    work: Workload,
    *,
    iterations: int,
    solver: str | Callable[..., Any] = "auto",
    pairwise: bool = False,
    device: str | None = None,
    max_memory: float | None = None,
) -> Plan:
    """What a training of n rows and p features will hold and cost."""
    reason, squared, units = "as asked for", work.squared, work.units
    if solver == "auto":
        solver, reason = choose_solver(n, pairwise=pairwise, squared=squared, device=device, max_memory=max_memory)
    made = {LowRank.name: LowRank(), Iterative.name: Iterative()}.get(solver, solver) if isinstance(solver, str) else solver
    most = memory_limit(max_memory, device) / work.groups
    cores = GPU_CORES if device is not None and device != "cpu" else 1.0 + MOST_PARALLEL * (cpu_count() - 1)
    seconds = n * units * 25 * LATENT_STEP * iterations
    if isinstance(made, LowRank):
        sizes = made.sizes(n, most, device)
        rank, leaf = sizes.rank, sizes.leaf
        numbers = work.groups * sizes.bytes + 2 * BLOCK_BYTES
        widths = rank + leaf
        setup = n * widths * (KERNEL_VALUE + 2.0 * p / RATE)
        setup += n * (2 * rank**2 + 2 * leaf * rank + 2 * (leaf**2 + 2 * rank * leaf + 2 * rank**2)) / RATE
        step = n * (3 * leaf + 4 * rank) * (WIDENING + 2.0 * units / RATE)
        seconds += (setup + 1.5 * iterations * step) / cores
        held = numbers + latent_bytes(n, work) + 8 * n * (p + SOLVED * units)
        filed = work.groups * sizes.filed_bytes
        seconds += (1.0 + iterations) * filed / DISK_RATE
        in_memory = int(chosen_bytes(n, work, held))
        if isinstance(made, Iterative):
            in_memory += passing_bytes(n, p, units, device)
            passing = PASSES * iterations * n * n / 2 * (KERNEL_VALUE + (2.0 * p + 4.0 * units) / RATE) / cores
            seconds += passing if cores < GPU_CORES else passing / FUSED
        return Plan(made.name, reason, n, p, in_memory, float(seconds), rank, leaf, filed_bytes=filed)
    operations = n * n * (KERNEL_VALUE + 2.0 * p / RATE) + (n**3 if squared else n**3 / 6.0) / RATE
    operations += 1.5 * iterations * (1 if squared else 40) * 2.0 * n * n * units / RATE
    name = solver if isinstance(solver, str) else type(solver).__name__
    on_device = work.groups * device_bytes(n, squared=squared, most=most)
    peak = chosen_bytes(n, work, dense_bytes(n, work)) if device is None else on_device
    return Plan(name, reason, n, p, int(peak), float(seconds + operations / cores))


def _readable_seconds(seconds: float) -> str:
    if seconds < 90:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"
