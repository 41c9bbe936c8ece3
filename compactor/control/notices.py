"""Tells people once when something changes: what was done, what is wrong now, and what is right again."""

from collections.abc import Mapping, Sequence

from pydantic import ValidationError

from compactor.control.ports import Notifier
from compactor.core.errors import CompactorError, ObjectNotFound
from compactor.core.ports import ObjectStore
from compactor.core.records import Document
from compactor.telemetry.logs import log_event


class Told(Document):
    """The alarms that people know of, each with the words they were told; all that the control plane remembers."""

    alarms: dict[str, str]


class Notices:
    """What people were told.

    Args:
        notifier: Reaches them; None where nobody is to be told, and what others were told stays as it is.
        store: Where it is kept what they were told last.
        uri: Its place.
        job_name: Which job it is about.
    """

    def __init__(self, notifier: Notifier | None, store: ObjectStore, uri: str, job_name: str) -> None:
        self._notifier = notifier
        self._store = store
        self._uri = uri
        self._job_name = job_name

    def tell(self, done: Sequence[str], alarms: Mapping[str, str]) -> None:
        """Tell what was done, and which alarms came and went.

        Trouble with telling is logged. What could not be told is told the next time; where it is not known what people
        know, they are told of what was done alone, or they would hear of each alarm every minute.

        Args:
            done: What was done, in words.
            alarms: What is wrong, by what it is about.
        """
        if self._notifier is None:
            return
        try:
            told = self._told()
        except CompactorError as exc:
            log_event("control.notices_unread", error=exc)
            told, alarms = {}, {}
        new = [words for about, words in alarms.items() if about not in told]
        over = [words for about, words in told.items() if about not in alarms]
        if not (done or new or over):
            return
        try:
            self._notifier.tell(self._subject(done, new), _text(done, new, over, alarms))
            if new or over:
                self._store.put(self._uri, Told(alarms=dict(alarms)).model_dump_json().encode())
        except CompactorError as exc:
            log_event("control.not_told", error=exc)

    def _told(self) -> dict[str, str]:
        try:
            return Told.model_validate_json(self._store.read(self._uri)).alarms
        except (ObjectNotFound, ValidationError):  # a damaged note is none: everything is told once more
            return {}

    def _subject(self, done: Sequence[str], new: Sequence[str]) -> str:
        first = new[0] if new else done[0] if done else "all is well again"
        return f"{self._job_name}: {first}"


def _text(done: Sequence[str], new: Sequence[str], over: Sequence[str], alarms: Mapping[str, str]) -> str:
    still = [words for words in alarms.values() if words not in new]
    parts = (("Done", done), ("Wrong now", new), ("Still wrong", still), ("Right again", over))
    return "\n\n".join(title + ":\n" + "\n".join(f"- {words}" for words in lines) for title, lines in parts if lines)
