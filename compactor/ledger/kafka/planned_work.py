"""Counts the offsets that are planned and not done: those in manifests that wait or are in progress."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from compactor.core.documents.manifest import Manifest
from compactor.core.errors import ManifestError, ObjectNotFound, StuckError
from compactor.core.kafka.ranges import KafkaRange, Topic, is_kafka
from compactor.core.layout import id_from_name, is_delivery
from compactor.core.map_ordered import map_ordered
from compactor.core.ports import ObjectInfo
from compactor.ledger.backlog import read_waiting_manifest
from compactor.ledger.state import State

READ_AT_ONCE = 500
"""Manifests that one count reads at most. The next one goes on with others; those that were not read do not count."""

Place = tuple[Topic, int]
"""A partition by its number."""


@dataclass(slots=True)
class PlannedWork:
    """Counts what is planned and not done, again and again. It reads a manifest once.

    Attributes:
        allowed_prefixes: Where input may be.
    """

    state: State
    allowed_prefixes: Sequence[str]
    _known: dict[str, Mapping[Place, int]] = field(default_factory=dict, init=False)

    def offsets(self) -> dict[Place, int]:
        """How many offsets of each partition are in manifests that are not done."""
        ledger, folder = self.state.ledger, self.state.layout.manifests_folder
        waiting = {id_from_name(info.uri): info for info in self.state.store.list(folder) if is_delivery(info.uri)}
        unfinished = [*waiting, *(each for each in ledger.open_ids() if each not in waiting)]
        unread = [each for each in unfinished if each not in self._known][:READ_AT_ONCE]
        read = map_ordered(lambda each: self._read(each, waiting.get(each)), unread)
        fresh = {each: found for each, found in zip(unread, read, strict=True) if found is not None}
        known = {**self._known, **fresh}
        self._known = {each: known[each] for each in unfinished if each in known}
        total = defaultdict[Place, int](int)
        for found in self._known.values():
            for place, offsets in found.items():
                total[place] += offsets
        return dict(total)

    def _read(self, manifest_id: str, waiting: ObjectInfo | None) -> Mapping[Place, int] | None:
        """The offsets of a manifest; None if they cannot be told now."""
        try:
            if waiting is not None:
                return _offsets(read_waiting_manifest(self.state, waiting, allowed_prefixes=self.allowed_prefixes))
            accepted = self.state.ledger.accepted(manifest_id)
        except ManifestError:
            return {}  # it will be a dead letter
        except (ObjectNotFound, StuckError):
            return None
        return None if accepted is None or accepted.manifest is None else _offsets(accepted.manifest)


def _offsets(manifest: Manifest) -> dict[Place, int]:
    found = defaultdict[Place, int](int)
    for each in (KafkaRange.parse(file.uri) for file in manifest.files if is_kafka(file.uri)):
        found[each.topic, each.partition] += each.offsets
    return dict(found)
