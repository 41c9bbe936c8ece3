"""What is said while the jobs of a deployment are of several releases."""

import pytest

from compactor.ops.status.health import releases_differ

OLD, NEW = ["0.1.0"], ["0.2.0"]


@pytest.mark.parametrize("releases", [{}, {"a": OLD, "b": OLD}, {"a": OLD, "b": []}, {"a": OLD, "b": [""]}])
def test_one_release_needs_no_word(releases: dict[str, list[str]]) -> None:
    """Nor does a stream without a run, or one whose release is not told."""
    assert releases_differ(releases, "b") is None


def test_a_canary_is_named_with_both_ways_on() -> None:
    """Either all get its release, or it goes back."""
    found = releases_differ({"a": OLD, "b": NEW, "c": OLD}, "b")
    assert found is not None
    assert found[0] == "b is the canary, with release 0.2.0; all others have 0.1.0"
    assert found[1].startswith("compactor job smoke-test --stream b; then make deploy ENV=... for all, or")
    assert "CANARY=back" in found[1]


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
    found = releases_differ(releases, canary)
    assert found is not None
    assert (found[0], found[1].startswith("make deploy ENV=... RESTART=1")) == (words, True)
