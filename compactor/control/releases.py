"""Says which releases the jobs of a deployment run, while they differ. Decisions, no I/O."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from compactor.core.text.safe_text import quoted


@dataclass(frozen=True, slots=True)
class ReleasesDiffer:
    """The jobs of a deployment are of several releases: during an upgrade, or because of a canary."""

    found: str  # what each runs, in words
    next_move: str


def differing(releases: Mapping[str, Collection[str]], canary: str = "") -> ReleasesDiffer | None:
    """What the runs of streams differ in; None if they are all of one release.

    Args:
        releases: Those of the living runs, by stream. An empty one is not told.
        canary: The stream whose job takes a release first; empty if there is none.
    """
    streams = dict[tuple[str, ...], list[str]]()
    for name, found in releases.items():
        if told := tuple(sorted({*filter(None, found)})):
            streams.setdefault(told, []).append(name)
    if len({release for told in streams for release in told}) < 2:  # noqa: PLR2004 - two differ
        return None
    words = "; ".join(f"release {' and '.join(told)}: {', '.join(names)}" for told, names in streams.items())
    alone = next((told for told, names in streams.items() if names == [canary]), None)
    if alone is None or len(streams) > 2 or any(len(told) > 1 for told in streams):  # noqa: PLR2004 - it and the others
        return ReleasesDiffer(
            words, "make deploy ENV=... RESTART=1, which leaves one release, if no upgrade is under way"
        )
    [others] = [told for told in streams if told != alone]
    check = f"compactor deploy check --stream {quoted(canary)}"
    return ReleasesDiffer(
        f"{canary} is the canary, with release {alone[0]}; all others have {others[0]}",
        f"{check}; then make deploy ENV=... for all, or with CANARY=back",
    )
