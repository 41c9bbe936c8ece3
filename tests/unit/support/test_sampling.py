"""What `make test` leaves to `make test-full`."""

from tests.support.sampling import few, few_rows


def test_cases_at_even_distances() -> None:
    """The first one is always among them, and no case is lost."""
    found = few("abcdefg", 3)
    assert [each.values for each in found] == [(letter,) for letter in "abcdefg"]
    assert [each.values[0] for each in found if not each.marks] == ["a", "c", "e"]
    assert [each.values for each in few_rows([(1, 2), (3, 4)], 1) if each.marks] == [(3, 4)]
    assert not [each for each in few([1, 2], 5) if each.marks]
