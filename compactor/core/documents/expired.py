"""What went under a rule of retention: the record of it, and what follows from that. No I/O.

The record is created before anything is deleted. It names its manifests, each with the generation of its outcome: what
comes later to the same date, as a late manifest or a rebuild, is not under it.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Literal

from pydantic import AwareDatetime

from compactor.core.documents.document import Document
from compactor.core.layout import ManifestKey

Part = Literal["rows", "rejects", "archive", "redriven"]
"""A part of what is stored of a manifest: output, rejects, its archived object, or the redriven lines that it read."""


class Expiry(StrEnum):
    """A kind of rule."""

    RETIRED = "retired"  # an operator retired the date
    ARCHIVE = "archive"  # archived manifests by age
    REDRIVEN = "redriven"  # redriven lines by age
    REJECTS = "rejects"  # rejects by age


TAKES: Mapping[Expiry, frozenset[Part]] = {
    Expiry.RETIRED: frozenset({"rows", "rejects", "archive", "redriven"}),
    Expiry.ARCHIVE: frozenset({"archive"}),
    Expiry.REDRIVEN: frozenset({"redriven"}),
    Expiry.REJECTS: frozenset({"rejects"}),
}
"""The parts that go under each kind of rule."""


class Expired(Document):
    """Says that parts of some manifests of a date expired. Never changed.

    Attributes:
        name: Part of its place. Two processes that record the same give it the same name.
        rule: The rule, in words, such as `retention.archive_days = 30`.
        by: Who applied it.
        manifests: The generation of the outcome of each, by id.
    """

    kind: Expiry
    date: str
    name: str
    rule: str
    by: str
    run_id: str
    expired_at: AwareDatetime
    manifests: dict[str, int]

    @property
    def words(self) -> str:
        """What every command says in place of the thing that expired."""
        return f"expired on {self.expired_at:%Y-%m-%d} under {self.rule}"

    def takes(self, part: Part, key: ManifestKey, generation: int) -> bool:
        """Return whether a part of a generation of a manifest is under it."""
        is_member = key.date == self.date and generation <= self.manifests.get(key.id, 0)
        return is_member and part in TAKES[self.kind]


def expired_in(records: Iterable[Expired], part: Part, key: ManifestKey, generation: int) -> Expired | None:
    """The first record that a part of a manifest expired by; None if it has to be there."""
    found = [each for each in records if each.takes(part, key, generation)]
    return min(found, key=lambda each: (each.expired_at, each.name), default=None)


def left_under(record: Expired, generations: Mapping[str, int], opened: Iterable[str]) -> tuple[list[str], list[str]]:
    """The manifests of a record whose parts may be deleted now, and those for which that has to wait.

    A manifest that was rebuilt since keeps what it has. One that is open may be rebuilt at this moment.

    Args:
        record: The record.
        generations: The generation of the newest outcome of each of its manifests; none for one that has no outcome.
        opened: The ids of open manifests.
    """
    in_work = set(opened)
    same = [each for each, generation in record.manifests.items() if generations.get(each, 0) == generation]
    # guard: the files of a manifest that is open are left to the next run
    return [each for each in same if each not in in_work], [each for each in same if each in in_work]
