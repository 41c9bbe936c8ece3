"""Bins of files whose output has the right size, as far as files that stay whole allow."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor.engines.native.engine import LEEWAY, bins_of
from compactor.ledger.sizing import leeway, planned_files

TARGET = 1000
FILES = st.lists(st.integers(0, 3 * TARGET), min_size=1, max_size=40)


def loads(files: list[int], ratio: float = 1.0) -> list[int]:
    return [sum(each) for each in bins_of(files, lambda size: size, ratio=ratio, target_file_bytes=TARGET)]


@given(files=FILES, ratio=st.sampled_from([0.0, 0.1, 1.0, 3.0]))
def test_every_file_is_in_one_bin(files: list[int], ratio: float) -> None:
    """Bins keep the order of the manifest, and none is empty; there are never more of them than output files."""
    numbered = list(enumerate(files))
    bins = bins_of(numbered, lambda file: file[1], ratio=ratio, target_file_bytes=TARGET)
    assert sorted(file for each in bins for file in each) == numbered
    assert all(each == sorted(each) and each for each in bins)
    assert len(bins) <= planned_files(sum(files), ratio, TARGET)


@given(files=FILES)
def test_bins_are_right_where_the_whole_could_be(files: list[int]) -> None:
    """Files of any size: if the whole output can be in files of the right size, that of each bin can."""
    if leeway(sum(files), TARGET) >= LEEWAY:
        assert all(leeway(load, TARGET) >= LEEWAY for load in loads(files) if load)


@given(files=st.lists(st.integers(1, TARGET // 20), min_size=40, max_size=120))
def test_small_files_make_one_bin_for_each_output_file(files: list[int]) -> None:
    """All cores have work: bins are only joined where large files leave no other way."""
    if leeway(sum(files), TARGET) >= 1.06:
        assert len(loads(files)) == planned_files(sum(files), 1.0, TARGET)


@pytest.mark.parametrize(
    ("files", "bins"),
    [
        ([500] * 5, [2500]),  # bins of 1000, 1000 and 500 would leave a file of half a target
        ([1400, 900, 900], [900, 2300]),  # 1400 alone is one file too large, or two too small
        ([700, 700], [700, 700]),  # not to be fixed: 1400 is no better, and two tasks are faster
        ([5000], [5000]),
        ([330] * 9, [990, 990, 990]),
        ([0, 0], [0]),
    ],
)
def test_bins_by_example(files: list[int], bins: list[int]) -> None:
    """A bin whose file would be too small or too large is joined with another one."""
    assert sorted(loads(files)) == bins
