"""Notifies operators once per change: actions taken, new problems, and resolved ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from compactor.control.diagnosis.alarms import unread
from compactor.control.diagnosis.health import Condition
from compactor.control.snapshot import Notifier, Source
from compactor.core.documents.document import Document
from compactor.core.errors import CompactorError, ObjectNotFound, RecordUnreadable
from compactor.core.ports import ObjectStore
from compactor.core.text.safe_text import visible
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
_UNSEEN: Mapping[Source, set[Condition]] = {
    Source.RUNS: _OF_RUNS,
    Source.HEARTBEATS: {Condition.NO_HEARTBEAT, Condition.FOREIGN_RUN},
    Source.QUEUE_AGE: {Condition.QUEUE_AGE},
    Source.DEAD_LETTERS: {Condition.EVENTS_DEAD_LETTERED},
    Source.MANIFESTS: {Condition.OLDEST_MANIFEST, Condition.NO_PROGRESS},
    Source.LEDGER: {Condition.COLUMNS_NEARLY_FULL, Condition.NO_PROGRESS},
    Source.BREAKER: {Condition.CRASH_LOOP},
    Source.DEFINITION: {Condition.CRASH_LOOP},
    Source.SEEN: {Condition.STARTS_REFUSED, Condition.NO_HEARTBEAT, Condition.NO_PROGRESS, Condition.STATE_LASTS},
}
"""The alarms that cannot be evaluated while a source is unknown."""

_SOURCES = {unread(source, "").name: source for source in Source}
"""Each source by the name of the alarm for failing to read it."""


class Notified(Document):
    """The alarms already sent, each with its text; the control plane's only memory.

    Attributes:
        passing: What could not be read at the last check, by finding name; reported if it lasts.
    """

    alarms: dict[str, str]
    passing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Notices:
    """Notifications for one job."""

    notifier: Notifier | None  # sends them; with None nothing is sent, and the record of sent messages stays unchanged
    store: ObjectStore  # has that record
    uri: str
    job_name: str

    def tell(self, done: Sequence[str], alarms: Mapping[str, str]) -> None:
        """Send a message if anything was done, or if an alarm started or ended. Alarms are keyed by finding name.

        An unreadable source is reported at the second check in a row. Until it is readable again, no alarm that depends
        on it counts as resolved. Errors are logged, and the message is sent at the next check. While the record of sent
        messages is unreadable, alarms are omitted: they would be sent again every minute.
        """
        if self.notifier is None:
            return
        try:
            record = self._notified()
        except CompactorError as exc:
            log_event("control.notices_unread", error=exc)
            record, alarms = Notified(alarms={}), {}
        notified = record.alarms
        unknown = [about for about in alarms if about in _SOURCES]
        passing = tuple(about for about in unknown if about not in notified and about not in record.passing)
        alarms = {about: words for about, words in alarms.items() if about not in passing}
        unseen = {str(condition) for about in unknown for condition in _UNSEEN.get(_SOURCES[about], ())}
        alarms = {about: words for about, words in notified.items() if about in unseen} | alarms
        new = [words for about, words in alarms.items() if about not in notified]
        over = [words for about, words in notified.items() if about not in alarms]
        try:
            if done or new or over:
                self.notifier.tell(self._subject(done, new), _text(done, new, over, alarms))
            if new or over or passing != record.passing:
                kept = record.model_copy(update={"alarms": dict(alarms), "passing": passing})
                self.store.put(self.uri, kept.to_json())
        except CompactorError as exc:
            log_event("control.not_notified", error=exc)

    def _notified(self) -> Notified:
        try:
            return Notified.read(self.store.read(self.uri), self.uri)
        except (ObjectNotFound, RecordUnreadable):  # without a readable record all alarms are sent once more
            return Notified(alarms={})

    def _subject(self, done: Sequence[str], new: Sequence[str]) -> str:
        first = new[0] if new else done[0] if done else "all is well again"
        return f"{self.job_name}: {first}"


def _text(done: Sequence[str], new: Sequence[str], over: Sequence[str], alarms: Mapping[str, str]) -> str:
    still = [words for words in alarms.values() if words not in new]
    parts = (("Done", done), ("Wrong now", new), ("Still wrong", still), ("Right again", over))
    return "\n\n".join(
        title + ":\n" + "\n".join(f"- {visible(words)}" for words in lines) for title, lines in parts if lines
    )
