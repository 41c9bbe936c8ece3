"""What a watch need not read again, because it never changes."""

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime

from compactor.core.records import Commit, DeadLetter
from compactor.ops.status.values import Spent


@dataclass(slots=True)
class StatusCache:
    """What was read before; bounded, as each look drops what it did not need.

    Attributes:
        weights: Of waiting manifests, by URI and version: the bytes that each names.
        letters: Dead letters by the URI of their reason.
        redriven: Those URIs whose manifests were put back and taken in for good.
        commits: Commits by manifest id.
        arrivals: Of each commit that is done, the seconds that its files took.
        cost: What Glue said last, and when.
    """

    weights: dict[tuple[str, str], int] = field(default_factory=dict)
    letters: dict[str, DeadLetter] = field(default_factory=dict)
    redriven: set[str] = field(default_factory=set)
    commits: dict[str, Commit] = field(default_factory=dict)
    arrivals: dict[str, tuple[float, ...]] = field(default_factory=dict)
    cost: tuple[datetime, Spent] | None = None

    def keep_only(self, *, letters: Collection[str], commits: Collection[str]) -> None:
        """Drop what the last look did not need."""
        self.letters = {uri: letter for uri, letter in self.letters.items() if uri in letters}
        self.redriven &= set(letters)
        self.commits = {key: commit for key, commit in self.commits.items() if key in commits}
        self.arrivals = {key: seconds for key, seconds in self.arrivals.items() if key in commits}
