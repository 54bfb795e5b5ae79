"""Memory: estimated for what really runs, before it starts, and refused where it does not fit."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kstonet import GramTooLargeError, KStoNetRegressor
from kstonet._words import readable_bytes
from kstonet.gram import memory
from kstonet.gram.footprint import Workload, dense_bytes, searched_bytes
from kstonet.tuning.parts import search_sizes
from tests.reliability.peaks import in_process

linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
X = np.random.default_rng(0).normal(size=(300, 2))
Y = np.sin(X[:, 0])
WITHIN = 1.2


@linux
@pytest.mark.parametrize("kind", ["many units"])
def test_the_peak_is_what_was_estimated(kind: str) -> None:
    """At 2,000 rows; other kinds and sizes are in tests/long/test_memory.py."""
    peak, _, estimate, said = in_process(kind, 2_000)
    assert peak / WITHIN <= estimate <= peak * WITHIN, f"peak {peak / 1e6:.0f} MB, estimate {estimate / 1e6:.0f} MB"
    assert said == estimate  # nothing is chosen


def test_what_a_choice_takes_is_a_range_before_it_and_one_number_after_it(capsys: pytest.CaptureFixture[str]) -> None:
    rows = np.random.default_rng(1).normal(size=(600, 3))
    model = KStoNetRegressor(max_iter=1, residuals=None, random_state=0, verbose=1)
    plan = model.explain_plan(rows)
    assert plan.least_bytes is not None
    assert plan.least_bytes < plan.bytes / WITHIN
    assert f"{readable_bytes(plan.least_bytes)} (one kernel) to {readable_bytes(plan.bytes)} (several)" in str(plan)
    model.fit(rows, np.sin(rows[:, 0]))
    said = capsys.readouterr().err.splitlines()
    assert plan.least_bytes <= model.plan_.bytes <= plan.bytes
    assert f"[KStoNetRegressor] {replace(model.plan_, seconds=0.0)}" in said  # below a second either way
    assert [line for line in said if "1/1" in line], "before the training"


def test_several_kernels_are_counted_together() -> None:
    model = KStoNetRegressor(tuning="none", kernel=["rbf", "laplacian", "matern32"], hidden_layer_sizes=3, solver="dense")
    alone = 300**2 * 16 + 300 * 300 * 8
    with pytest.raises(
        GramTooLargeError, match=r"3 dense kernel matrices of n=300 rows need .* together.*fewer different kernels"
    ):
        model.set_params(max_memory=2.0 * alone).fit(X, Y)
    model.set_params(max_memory=3.1 * alone, max_iter=1, residuals=None).fit(X, Y)
    assert model.plan_.bytes > 3 * alone


def test_a_search_is_refused_before_it_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kstonet.estimators.kstonet.search", lambda *args, **options: pytest.fail("it searched"))
    with pytest.raises(GramTooLargeError, match=r"larger max_memory"):
        KStoNetRegressor(C="tune", solver="dense", max_memory=1e5).fit(X, Y)


def test_what_is_estimated_grows_with_what_is_asked_for() -> None:
    def work(**asked: object) -> float:
        return dense_bytes(3_000, Workload(**({"squared": False, "intervals": False} | asked)))  # type: ignore[arg-type]

    assert work() < work(intervals=True) < work(groups=2, intervals=True)
    assert work(squared=True, groups=2) > 1.6 * work(squared=True)
    searched = Workload(squared=False, searched=2)
    assert searched_bytes(*search_sizes(3_000), searched, 0.0) > searched_bytes(
        *search_sizes(3_000), Workload(squared=False, searched=1), 0.0
    )


TIGHT = """
import resource, sys
import numpy as np
from kstonet import GramTooLargeError, KStoNetRegressor
from tests.reliability.peaks import resident
X = np.random.default_rng(0).normal(size=(2_000, 2))
model = KStoNetRegressor(tuning="none", max_iter=1, residuals=None, n_jobs=1)
needed = model.explain_plan(X).bytes
resource.setrlimit(resource.RLIMIT_AS, (int(resident("VmSize") + float(sys.argv[1]) * needed),) * 2)
try:
    model.fit(X, X[:, 0])
    print("fitted")
except GramTooLargeError as error:
    print("refused:", error)
"""


@linux
@pytest.mark.parametrize(("times", "ends"), [(0.6, "refused"), (1.0, "refused"), (3.0, "fitted")])
def test_a_fit_that_there_is_no_room_for_is_refused_before_it_begins(times: float, ends: str) -> None:
    """Matrices that just fit, and nothing beside them, once ended in a MemoryError, or in stalls of the matrix library."""
    limited = subprocess.run([sys.executable, "-c", TIGHT, str(times)], capture_output=True, text=True, check=False, timeout=60)
    assert limited.stdout.startswith(ends), limited.stderr[-800:]


SMALL = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]),) * 2)
import numpy as np
from kstonet import GramTooLargeError, KStoNetRegressor
from kstonet.gram.memory import available_memory
assert available_memory() < int(sys.argv[1])
X = np.random.default_rng(0).normal(size=(20_000, 2))
try:
    KStoNetRegressor(tuning="none", solver="dense").fit(X, X[:, 0])
except GramTooLargeError as error:
    print("refused:", error)
"""


@linux
def test_the_address_space_is_a_limit() -> None:
    """``ulimit -v`` once ended in a MemoryError in the middle of a training."""
    limited = subprocess.run([sys.executable, "-c", SMALL, str(4 * 10**9)], capture_output=True, text=True, check=False)
    assert limited.stdout.startswith("refused: A fit of n=20,000 rows needs about"), limited.stderr[-800:]


@pytest.mark.parametrize("version", [1, 2])
def test_limits_of_control_groups(version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the process's own group and of the groups around it, in both versions of them."""
    root = tmp_path if version == 2 else tmp_path / "memory"
    names = ("memory.max", "memory.current") if version == 2 else memory.OF_VERSION_1
    inner = root / "outer" / "inner"
    inner.mkdir(parents=True)
    for folder, limit in ((inner, "max" if version == 2 else str(2**63 - 4096)), (inner.parent, "1000000")):
        (folder / names[0]).write_text(limit)
        (folder / names[1]).write_text("400000")
    (tmp_path / "cgroup").write_text("0::/outer/inner\n" if version == 2 else "5:cpu,memory:/outer/inner\n1:name=x:/\n")
    read = memory._lines
    monkeypatch.setattr(memory, "GROUPS", tmp_path)
    monkeypatch.setattr(memory, "_lines", lambda path: read(str(tmp_path / "cgroup") if path.endswith("cgroup") else path))
    assert memory.available_memory() == 600_000
    (inner.parent / "memory.stat").write_text(f"anon 1\n{'' if version == 2 else 'total_'}inactive_file 150000\n")
    assert memory.available_memory() == 750_000  # files that were read give way
