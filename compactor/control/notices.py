"""Notifies people once per change: what was done, what is wrong now, and what is right again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from compactor.control.health import Condition
from compactor.control.ports import Notifier
from compactor.core.errors import CompactorError, ObjectNotFound
from compactor.core.ports import ObjectStore
from compactor.core.records import Document
from compactor.core.safe_text import visible
from compactor.telemetry.logs import log_event

_OF_RUNS = {
    Condition.NO_PROGRESS,
    Condition.NO_HEARTBEAT,
    Condition.CRASH_LOOP,
    Condition.STARTS_REFUSED,
    Condition.SEVERAL_RUNS,
    Condition.FOREIGN_RUN,
    Condition.STATE_LASTS,
    Condition.UNKNOWN_STATE,
}
_UNSEEN: Mapping[str, set[Condition]] = {
    "unknown_glue": _OF_RUNS,
    "unknown_heartbeats": {Condition.NO_HEARTBEAT, Condition.FOREIGN_RUN},
    "unknown_queue_age": {Condition.QUEUE_AGE},
    "unknown_dead_letters": {Condition.EVENTS_DEAD_LETTERED},
    "unknown_manifests": {Condition.OLDEST_MANIFEST, Condition.NO_PROGRESS},
    "unknown_ledger": {Condition.COLUMNS_NEARLY_FULL, Condition.NO_PROGRESS},
    "unknown_breaker": {Condition.CRASH_LOOP},
    "unknown_definition": {Condition.CRASH_LOOP},
    "unknown_refusals": {Condition.STARTS_REFUSED},
}
"""The alarms that cannot be seen while a source is unknown, by the name of the finding about that source."""


class Told(Document):
    """The alarms that people were notified of, each with its text; all that the control plane remembers.

    Attributes:
        passing: What could not be read at the last check, by the name of the finding; people hear of it if it lasts.
    """

    alarms: dict[str, str]
    passing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Notices:
    """Notifications about one job."""

    notifier: Notifier | None  # sends them; with None nothing is sent, and the record of what was sent stays as it is
    store: ObjectStore  # holds that record
    uri: str
    job_name: str

    def tell(self, done: Sequence[str], alarms: Mapping[str, str]) -> None:
        """Send a message if anything was done, or if an alarm came or went. Alarms are by the name of the finding.

        What cannot be read is told at the second check in a row. Until it can be read again, no alarm about it counts
        as over, for it may only be unseen. An error is logged, and the message is sent at the next check. While the
        record of what was sent cannot be read, alarms are left out: they would be sent again every minute.
        """
        if self.notifier is None:
            return
        try:
            record = self._told()
        except CompactorError as exc:
            log_event("control.notices_unread", error=exc)
            record, alarms = Told(alarms={}), {}
        told = record.alarms
        unread = [about for about in alarms if is_unread(about)]
        passing = tuple(about for about in unread if about not in told and about not in record.passing)
        alarms = {about: words for about, words in alarms.items() if about not in passing}
        unseen = {str(condition) for about in unread for condition in _UNSEEN.get(about, ())}
        alarms = {about: words for about, words in told.items() if about in unseen} | alarms
        new = [words for about, words in alarms.items() if about not in told]
        over = [words for about, words in told.items() if about not in alarms]
        try:
            if done or new or over:
                self.notifier.tell(self._subject(done, new), _text(done, new, over, alarms))
            if new or over or passing != record.passing:
                kept = Told(alarms=dict(alarms), passing=passing)
                self.store.put(self.uri, kept.model_dump_json().encode())
        except CompactorError as exc:
            log_event("control.not_told", error=exc)

    def _told(self) -> Told:
        try:
            return Told.model_validate_json(self.store.read(self.uri))
        except (ObjectNotFound, ValidationError):  # without a readable record all alarms are sent once more
            return Told(alarms={})

    def _subject(self, done: Sequence[str], new: Sequence[str]) -> str:
        first = new[0] if new else done[0] if done else "all is well again"
        return f"{self.job_name}: {first}"


def is_unread(about: str) -> bool:
    """Whether an alarm is about something that could not be read."""
    return about.startswith(f"{Condition.UNKNOWN}_") and about != Condition.UNKNOWN_STATE


def _text(done: Sequence[str], new: Sequence[str], over: Sequence[str], alarms: Mapping[str, str]) -> str:
    still = [words for words in alarms.values() if words not in new]
    parts = (("Done", done), ("Wrong now", new), ("Still wrong", still), ("Right again", over))
    return "\n\n".join(
        title + ":\n" + "\n".join(f"- {visible(words)}" for words in lines) for title, lines in parts if lines
    )
