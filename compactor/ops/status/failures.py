"""Reads what was set aside and not put back: the latest dead letters, and files of the latest commits."""

from collections import Counter
from collections.abc import Sequence

from compactor.core.errors import ObjectNotFound, StuckError
from compactor.core.layout import Layout, base_name
from compactor.core.map_ordered import map_ordered
from compactor.core.ports import ObjectInfo, ObjectStore
from compactor.core.records import Commit, DeadLetter, RecentCommit, read_record
from compactor.ledger.ledger import Ledger
from compactor.ops.redrive.redrive_log import RedriveLog, taken_from, was_redriven
from compactor.ops.redrive.selection import Scope, files_left
from compactor.ops.status.cache import StatusCache
from compactor.ops.status.values import DeadLetters, FilesQuarantined, QuarantinedFile

LETTERS_READ = 50
"""How many dead letters, the latest, are asked whether they were put back."""

COMMITS_READ = 16
"""In how many commits, the latest of those that set files aside, these are looked for."""

_NAMED = 5
_REASON_SUFFIX = ".reason.json"


class FailureReader:
    """Reads what was set aside.

    Args:
        store: Where dead letters are.
        layout: Their places.
        ledger: Holds the commits.
        redrive_log: Knows what was put back.
        memory: What need not be read again.
    """

    def __init__(
        self, store: ObjectStore, layout: Layout, ledger: Ledger, redrive_log: RedriveLog, memory: StatusCache
    ) -> None:
        self._store = store
        self._layout = layout
        self._ledger = ledger
        self._redrive_log = redrive_log
        self._memory = memory

    def dead_letters(self) -> tuple[DeadLetters, list[str]]:
        """The dead letters, and the URIs of those that were looked at."""
        infos = [info for info in self._store.list(self._layout.failed_folder) if info.uri.endswith(_REASON_SUFFIX)]
        latest = sorted(infos, key=lambda info: info.modified_at, reverse=True)[:LETTERS_READ]
        letters = [letter for letter in map_ordered(self._open_letter, latest) if letter is not None]
        reasons = dict(Counter(letter.reason for letter in letters))
        found = DeadLetters(len(infos), len(latest), len(letters), reasons, tuple(letters[:_NAMED]))
        return found, [info.uri for info in latest]

    def _open_letter(self, info: ObjectInfo) -> DeadLetter | None:
        """A dead letter that nobody put back; None if somebody did."""
        uri = info.uri
        if uri in self._memory.redriven:
            return None
        manifest_id = base_name(uri).removesuffix(_REASON_SUFFIX)
        try:
            letter = self._letter(info, manifest_id)
            entries = self._redrive_log.entries_about(manifest_id)
        except ObjectNotFound:  # put back by hand since the listing
            return None
        except StuckError as exc:  # nobody can tell, so somebody has to look
            return _unreadable(manifest_id, info, str(exc))
        if not was_redriven(manifest_id, entries):
            return letter
        own = [each for each in entries if each.redrive.source == manifest_id]
        if all(each.fate in {"accepted", "revoked"} for each in own):
            self._memory.redriven.add(uri)
        return None

    def _letter(self, info: ObjectInfo, manifest_id: str) -> DeadLetter:
        known = self._memory.letters.get(info.uri)
        if known is not None:
            return known
        data = self._store.read(info.uri)
        try:
            letter = read_record(DeadLetter.model_validate_json, data, info.uri, expected="a dead letter")
        except StuckError as exc:  # not remembered: somebody may mend it
            return _unreadable(manifest_id, info, str(exc))
        self._memory.letters[info.uri] = letter
        return letter

    def files(self, recent: Sequence[RecentCommit]) -> FilesQuarantined:
        """Files that the latest commits set aside.

        Args:
            recent: Summaries, oldest first. Those of older releases do not say whether files were set aside.
        """
        latest_first = recent[::-1]
        asked = [each for each in latest_first if each.quarantined is None or each.quarantined][:COMMITS_READ]
        files = [file for found in map_ordered(self._files_of, asked) for file in found]
        looked_at = len(recent) if len(asked) < COMMITS_READ else latest_first.index(asked[-1]) + 1
        statuses = dict(Counter(file.status for file in files))
        return FilesQuarantined(looked_at, len(files), statuses, tuple(files[:_NAMED]))

    def _files_of(self, summary: RecentCommit) -> list[QuarantinedFile]:
        try:
            commit = self._memory.commits.get(summary.manifest_id)
            if commit is None:
                outcome = self._ledger.outcome(summary.key)
                if not isinstance(outcome, Commit):
                    return []
                commit = self._memory.commits[summary.manifest_id] = outcome
        except (ObjectNotFound, StuckError):  # the summaries are a cache: what they name need not be there
            return []
        left = files_left(Scope("files"), commit, [])
        if left:
            try:
                own = taken_from(summary.manifest_id, self._redrive_log.entries_about(summary.manifest_id))
                left = files_left(Scope("files"), commit, own)
            except (ObjectNotFound, StuckError):
                pass  # nobody can tell, so somebody has to look
        return [QuarantinedFile(summary.manifest_id, each.uri, str(each.status), each.detail) for each in left]


def _unreadable(manifest_id: str, info: ObjectInfo, fault: str) -> DeadLetter:
    """Stands for a dead letter that cannot be read."""
    return DeadLetter(
        manifest_id=manifest_id,
        date="",
        reason="unreadable",
        message=fault,
        source_uri="",
        run_id="",
        decided_at=info.modified_at,
    )
