"""What is said while the jobs of a deployment are of several releases."""

import pytest

from compactor.control.releases import differing

OLD, NEW = ["0.1.0"], ["0.2.0"]


@pytest.mark.parametrize("releases", [{}, {"a": OLD, "b": OLD}, {"a": OLD, "b": []}, {"a": OLD, "b": [""]}])
def test_one_release_needs_no_word(releases: dict[str, list[str]]) -> None:
    """Nor does a stream without a run, or one whose release is not told."""
    assert differing(releases, "b") is None


def test_a_canary_is_named_with_both_ways_on() -> None:
    """Either all get its release, or it goes back."""
    found = differing({"a": OLD, "b": NEW, "c": OLD}, "b")
    assert found is not None
    assert found.found == "b is the canary, with release 0.2.0; all others have 0.1.0"
    assert found.next_move.startswith("compactor deploy check --stream b; then make deploy ENV=... for all, or")
    assert "CANARY=back" in found.next_move


@pytest.mark.parametrize(
    ("releases", "canary", "words"),
    [
        ({"a": OLD, "b": NEW}, "", "release 0.1.0: a; release 0.2.0: b"),
        ({"a": NEW, "b": OLD, "c": NEW}, "a", "release 0.2.0: a, c; release 0.1.0: b"),
        ({"a": OLD, "b": [*NEW, *OLD]}, "b", "release 0.1.0: a; release 0.1.0 and 0.2.0: b"),
    ],
)
def test_what_is_no_canary_is_an_upgrade(releases: dict[str, list[str]], canary: str, words: str) -> None:
    """An upgrade that is under way, or that no one brought to its end."""
    found = differing(releases, canary)
    assert found is not None
    assert (found.found, found.next_move.startswith("make deploy ENV=... RESTART=1")) == (words, True)
