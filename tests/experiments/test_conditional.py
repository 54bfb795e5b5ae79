"""The tables of conditional coverage."""

import pytest

from experiments.conditional import COLUMNS, pooled, report


def part(shares, rows=900, **changes):
    """What one split says, with the coverage of three thirds of its test rows."""
    found = dict.fromkeys(COLUMNS, 0.9) | {"rows": 2000, "test_rows": rows, "extra": 0.2}
    thirds = [list(shares), [rows // 3] * 3]
    return found | {"thirds": thirds, "feature_thirds": thirds} | changes


def test_thirds_are_added_up_before_the_least_is_taken():
    worst, _ = pooled([part((0.8, 0.9, 1.0)), part((1.0, 0.9, 0.8))], "thirds")
    assert worst == pytest.approx(0.9)
    worst, _ = pooled([part((0.8, 0.9, 1.0), 900), part((1.0, 0.9, 0.8), 300)], "thirds")
    assert worst == pytest.approx(0.85)


def test_chance_alone_makes_the_least_of_few_rows_small():
    """The mean of the least of three normal variables is 0.846 standard deviations below theirs."""
    for rows in (300, 30_000):
        deviation = (0.09 / (rows / 3)) ** 0.5
        assert pooled([part((0.9, 0.9, 0.9), rows)], "thirds")[1] == pytest.approx(0.9 - 0.846 * deviation, abs=0.1 * deviation)


def test_parts_that_are_missing_are_left_out():
    tied = part((0.9, 0.8, 1.0)) | {"thirds": [[0.9, 0.85], [600, 300]]}  # a value that most rows have
    assert pooled([tied], "thirds")[0] == pytest.approx(0.85)


def test_report_compares_methods_on_the_same_splits():
    parts = {f"airfoil|{k}|2000|kstonet": part((0.9, 0.9, 0.9), score=1.0 + 0.01 * k) for k in range(4)}
    parts |= {f"airfoil|{k}|2000|quantile boosting": part((0.9, 0.9, 0.9), score=2.0, crps=None, extra=None) for k in range(3)}
    parts |= {"airfoil|0|2000|NGBoost": part((0.7, 0.9, 0.9), score=0.5, extra=None)}
    text = report(parts)
    assert "Means of the 3 splits that all of these methods have done." in text
    assert "Means of the 1 splits that all of these methods have done." in text
    assert (
        "Interval score of 90 % intervals: kstonet is best, or not worse than the best by a paired t-test, on 0 of 1 sets."
        in text
    )
    assert "| airfoil | 4 | 2000 | 3600 |" in text
    assert "0.900 at least on sets of 1,000 rows or more (airfoil)" in text
