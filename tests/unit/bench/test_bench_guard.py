"""The guard of CPU time: what pairs of measurements tell, and what is said of it."""

import math
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.guard.programs import Program, check_apart
from bench.guard.rule import CONFIDENCE, LEAST_PAIRS, LIMIT, Verdict, judged, outside
from bench.guard.table import FAILED, PASSED, UNDECIDED, Row, closing
from tests.support.extras import NATIVE

SECONDS = st.floats(0.01, 1000)
PAIRS = st.lists(st.tuples(SECONDS, SECONDS), max_size=30)


@given(pairs=PAIRS)
def test_a_verdict_follows_from_the_interval(pairs: list[tuple[float, float]]) -> None:
    """It is given only if the whole interval is on one side of the limit, and the median is in the interval."""
    found = judged(pairs)
    if found.verdict is Verdict.SLOWER:
        assert found.lowest > LIMIT
    elif found.verdict is Verdict.AS_FAST:
        assert found.highest <= LIMIT
    else:
        assert found.lowest <= LIMIT < found.highest
    assert found.lowest <= found.ratio <= found.highest


@given(pairs=PAIRS, rng=st.randoms(use_true_random=False), unit=st.sampled_from([0.25, 1.0, 4.0]))
def test_neither_order_nor_unit_matters(pairs: list[tuple[float, float]], rng: random.Random, unit: float) -> None:
    """The same pairs tell the same."""
    other = [(old * unit, new * unit) for old, new in pairs]
    rng.shuffle(other)
    assert judged(other) == judged(pairs)


@given(pairs=PAIRS, factor=st.floats(1, 4))
def test_a_slower_program_is_never_judged_milder(pairs: list[tuple[float, float]], factor: float) -> None:
    """More time for the new one moves the verdict one way only."""
    milder = [Verdict.AS_FAST, Verdict.UNDECIDED, Verdict.SLOWER]
    slower = judged([(old, new * factor) for old, new in pairs])
    assert milder.index(slower.verdict) >= milder.index(judged(pairs).verdict)


@given(new=SECONDS, pairs=st.integers(0, LEAST_PAIRS - 1))
def test_few_pairs_decide_nothing(new: float, pairs: int) -> None:
    """However large the difference is: a few pairs may all be wrong by luck."""
    assert judged([(1.0, new)] * pairs).verdict is Verdict.UNDECIDED
    assert judged([(1.0, new)] * LEAST_PAIRS).verdict is not Verdict.UNDECIDED


@pytest.mark.parametrize("pairs", range(LEAST_PAIRS, 60))
def test_the_interval_has_its_confidence(pairs: int) -> None:
    """The median is outside if nearly all ratios are on one side of it: as a fair coin falls, counted exactly."""
    left_out = outside(pairs)
    assert left_out is not None

    def missed(number: int) -> float:
        return 2 * sum(math.comb(pairs, each) for each in range(number + 1)) / 2**pairs

    assert missed(left_out) <= 1 - CONFIDENCE < missed(left_out + 1)


@pytest.mark.parametrize(
    ("slowdown", "noise", "verdict"),
    [
        (1.00, 0.02, Verdict.AS_FAST),
        (1.10, 0.02, Verdict.SLOWER),
        (0.80, 0.10, Verdict.AS_FAST),
        (1.50, 0.10, Verdict.SLOWER),
        (1.05, 0.02, Verdict.UNDECIDED),
        (1.00, 0.50, Verdict.UNDECIDED),
    ],
)
def test_by_example(slowdown: float, noise: float, verdict: Verdict) -> None:
    """A difference is seen through noise that is smaller; noise that is larger is called so."""
    luck = random.Random(3)
    pairs = [(luck.gauss(3, 3 * noise / 1.4), slowdown * luck.gauss(3, 3 * noise / 1.4)) for _ in range(24)]
    assert judged([(abs(old), abs(new)) for old, new in pairs]).verdict is verdict


def row(shape: str, ratio: float, pairs: int = 8) -> Row:
    return Row(shape, 500_000_000, [(2.0, 2.0 * ratio)] * pairs)


def test_what_is_said() -> None:
    """One slower shape fails, and is named; one that is undecided does not pass."""
    assert closing([row("a", 1.0), row("b", 1.04)])[0] == PASSED
    code, said = closing([row("a", 1.0), row("b", 1.06), row("c", 1.0, pairs=3)])
    assert (code, said) == (FAILED, "FAILED: b take over 5 % more CPU time than before.")
    code, said = closing([row("a", 1.0), row("c", 1.0, pairs=3)])
    assert code == UNDECIDED
    assert said.startswith("UNDECIDED: c may take over 5 % more CPU time or not")


@NATIVE.needed
def test_a_program_runs_its_own_code(tmp_path: Path) -> None:
    """If Python found the code of this tree in place of the old one, they would be compared with themselves."""
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        for module in ("compactor", "compactor_native"):
            (tmp_path / name / f"{module}.py").write_text("")
    old, new = Program("old", tmp_path / "old"), Program("new", tmp_path / "new")
    check_apart(old, new, tmp_path)
    (tmp_path / "old" / "compactor_native.py").unlink()
    with pytest.raises(RuntimeError, match=r"old: .*expected a file in"):
        check_apart(Program("old", tmp_path / "old"), new, tmp_path)


def test_a_run_that_fails_or_loses_rows_is_no_measurement(tmp_path: Path) -> None:
    """A program that does less is faster."""
    (tmp_path / "tree").mkdir()
    (tmp_path / "work").mkdir()
    main = tmp_path / "tree" / "compactor.py"
    program = Program("new", tmp_path / "tree")
    main.write_text("print('no room'); raise SystemExit(3)")
    with pytest.raises(RuntimeError, match="new: exit code 3: no room"):
        program.cpu_seconds(tmp_path, 1, tmp_path / "work")
    main.write_text("import sys; assert sys.argv[1] == 'compact'; sum(range(10**6))")
    with pytest.raises(RuntimeError, match="made 0 rows, expected 1"):
        program.cpu_seconds(tmp_path, 1, tmp_path / "work")
    assert 0 < program.cpu_seconds(tmp_path, 0, tmp_path / "work") < 60
