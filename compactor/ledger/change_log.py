"""The log of changes: each is created once, before it takes effect, and read where something is gone.

A change that deletes is first begun: the intention stays until all is deleted, so that any later call carries it out if
this one dies.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from compactor.core.crash_points import ChangeCrashPoint, OnChangeCrashPoint, ignore_change_crash_point
from compactor.core.documents.changes import Change, How, Why, release, released_id
from compactor.core.documents.table_records import MergedFile
from compactor.core.errors import ObjectNotFound, RecordUnreadable
from compactor.core.layout import digest, is_date
from compactor.core.map_ordered import map_ordered
from compactor.core.ports import ObjectInfo
from compactor.ledger.state import State


@dataclass(frozen=True, slots=True)
class ChangeLog:
    """Reads and writes the changes of one state."""

    state: State

    def publish(
        self,
        change: Change,
        effect: Callable[[Change], bool],
        on_crash_point: OnChangeCrashPoint = ignore_change_crash_point,
    ) -> None:
        """Carry a change to done.

        Args:
            change: The change.
            effect: Has the change that is valid take effect; returns whether all of it did. It may be called again.
            on_crash_point: Called at each crash point.
        """
        # guard: an intention is on record before anything expires, so that the next run finishes it
        self.begin(change)
        on_crash_point(ChangeCrashPoint.BEGUN, change.about)
        self.carry_out(change, effect, on_crash_point)

    def carry_out(
        self,
        begun: Change,
        effect: Callable[[Change], bool],
        on_crash_point: OnChangeCrashPoint = ignore_change_crash_point,
    ) -> None:
        """Carry out what was begun; see `publish`."""
        change = self.decide(begun)  # guard: what expires is on record before it is deleted
        on_crash_point(ChangeCrashPoint.RECORDED, change.about)
        is_over = effect(change)
        on_crash_point(ChangeCrashPoint.DELETED, change.about)
        if is_over:
            self.finish(begun)
            on_crash_point(ChangeCrashPoint.FINISHED, change.about)

    def begin(self, change: Change) -> None:
        """Put the intention on record, so that the next call carries it out if this one dies."""
        self.state.store.create(self._begun(change), change.to_json())

    def decide(self, change: Change) -> Change:
        """Put a change on record: from now on, it is valid.

        Returns:
            The one that is valid: this one, or that of another process, which was faster.

        Raises:
            RecordUnreadable: There is one, and it cannot be read.
        """
        uri = self._place(change)
        return change if self.state.store.create(uri, change.to_json()) else self._read(uri)

    def revise(self, change: Change) -> None:
        """Put what a call itself knows in place of what another one found, which took it for dead."""
        self.state.store.put(self._place(change), change.to_json())

    def finish(self, change: Change) -> None:
        """Forget the intention: all of the change took effect."""
        self.state.store.delete([self._begun(change)])

    def unfinished(self, whys: Collection[Why], *, skips_damaged: bool = False) -> Iterator[Change]:
        """The intentions of some kinds.

        Args:
            whys: The kinds.
            skips_damaged: Whether to leave those that cannot be read to a later call.

        Raises:
            RecordUnreadable: One of them cannot be read.
        """
        for uri in self._unfinished(whys):
            try:
                yield self._read(uri)
            except ObjectNotFound:  # another process finished it
                continue
            except RecordUnreadable:
                if not skips_damaged:
                    raise

    def count_unfinished(self, whys: Collection[Why]) -> int:
        """How many intentions of some kinds there are, by a listing alone."""
        return sum(1 for _ in self._unfinished(whys))

    def _unfinished(self, whys: Collection[Why]) -> Iterator[str]:
        folder, wanted = self.state.layout.changing_folder, set(whys)
        uris = (info.uri for info in self.state.store.list(folder))
        return (uri for uri in uris if uri.removeprefix(folder).partition("~")[0] in wanted)

    def has(self, why: Why, about: str, name: str) -> bool:
        """Whether a change is on record."""
        return self.state.store.stat(self.state.layout.change(why, about, name)) is not None

    def get(self, why: Why, about: str, name: str) -> Change | None:
        """A change; None if it is not on record."""
        return self.read(self.state.layout.change(why, about, name))

    def listed(self, why: Why, about: str) -> Iterator[ObjectInfo]:
        """The objects of the changes of a kind that are about something."""
        found = self.state.store.list(f"{self.state.layout.changes_folder(why)}{about}/")
        return (info for info in found if info.uri.endswith(".json"))

    def of(self, why: Why, about: str) -> Iterator[Change]:
        """The changes of a kind that are about something.

        Raises:
            RecordUnreadable: One of them cannot be read.
        """
        found = map_ordered(self.read, (info.uri for info in self.listed(why, about)))
        return (each for each in found if each is not None)

    def read(self, uri: str) -> Change | None:
        """The change of a place; None if there is none, or none any more."""
        return Change.find(self.state.store, uri)

    def merged_files(self, uris: Iterable[str], *, skips_damaged: bool = False) -> dict[str, MergedFile]:
        """Those of these files that are merged files on record, by their names.

        Args:
            uris: The files.
            skips_damaged: Whether a record that cannot be read counts as none.
        """

        def read(merge_id: str) -> Change | None:
            try:
                return self.get(Why.MERGED, "", merge_id)
            except RecordUnreadable:
                if skips_damaged:
                    return None
                raise

        merged = {uri: merge_id for uri in uris if (merge_id := self.state.layout.merge_of(uri))}
        found = dict[str, MergedFile]()
        for merge in map_ordered(read, dict.fromkeys(merged.values())):
            found.update({each.uri: each for each in merge.files if each.uri in merged} if merge else {})
        return found

    def release(self, file: MergedFile) -> Change:
        """Record that the parts of a merged file may be gone from now on, and are to be removed."""
        change = release(file, self.state.ledger.run_id, self.state.clock.now())
        self.begin(change)
        return self.decide(change)

    def is_released(self, file: MergedFile) -> bool:
        """Whether the parts of a merged file may be gone."""
        return self.has(Why.RELEASED, file.date, released_id(file.uri))

    def finish_release(self, file: MergedFile) -> None:
        """Record that no part of a merged file is left to be removed."""
        self.state.store.delete([self.state.layout.changing(Why.RELEASED, file.date, released_id(file.uri))])

    def forget_release(self, file: MergedFile) -> None:
        """Forget a merged file that is gone itself: nothing is found in it any more."""
        name = released_id(file.uri)
        places = (self.state.layout.changing, self.state.layout.change)
        self.state.store.delete([place(Why.RELEASED, file.date, name) for place in places])

    def dated(self, why: Why) -> Iterator[tuple[str, str, datetime]]:
        """The date, the name and the time of each change of a kind that is about dates, by a listing alone."""
        folder = self.state.layout.changes_folder(why)
        for info in self.state.store.list(folder):
            date, _, name = info.uri.removeprefix(folder).partition("/")
            if is_date(date) and name.endswith(".json"):
                yield date, name.removesuffix(".json"), info.modified_at

    def _place(self, change: Change) -> str:
        return self.state.layout.change(change.why, change.about, change.id)

    def _begun(self, change: Change) -> str:
        return self.state.layout.changing(change.why, change.about, change.id)

    def _read(self, uri: str) -> Change:
        return Change.read(self.state.store.read(uri), uri)


def give_up(state: State, manifest_id: str, uri: str, how: How, reason: str, *, by: str) -> Change:
    """Put on record that a quarantined input is given up, beside those of other inputs of its manifest.

    Returns:
        The change as it was decided here; one that was given up in the same way before stays as it was.
    """
    change = Change(
        why=Why.GIVEN_UP,
        about=manifest_id,
        id=digest(f"{how} {uri}".encode())[:32],
        reason=reason,
        by=by,
        run_id=state.ledger.run_id,
        decided_at=state.clock.now(),
        input=uri,
        how=how,
    )
    ChangeLog(state).decide(change)
    return change


def merge_of(state: State, merge_id: str, base: int, files: list[MergedFile]) -> Change:
    """The merge of some files, whose id no other one has; see `Change`."""
    run_id, now = state.ledger.run_id, state.clock.now()
    return Change(why=Why.MERGED, id=merge_id, base=base, files=files, run_id=run_id, decided_at=now)
