"""Sends a canary file through a deployment, follows it until its row is in the output, and removes all of it.

It has the earliest date accepted in a name, so it is alone in its manifest and in no query of recent dates. Its only
key is too long for a column, so the schema stays unchanged: its value becomes a rescued one.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import BytesIO
from typing import Any, Literal

import pyarrow.parquet as pq

from compactor.core.documents.changes import Commit
from compactor.core.layout import ManifestKey, folder, is_within
from compactor.core.text.safe_text import quoted
from compactor.ledger.accounts.reading import Scope, accounts
from compactor.ledger.state import State
from compactor.schema.schema import MAX_KEY_CHARACTERS, RESCUED_COLUMN

FOLDER = "compactor-check/"
"""The folder of canaries in the input."""

POLL_SECONDS = 2.0

LEFT_SECONDS = 3600.0
"""No check still runs for an older canary."""

Stage = Literal[
    "unknown", "claimed", "pending", "waiting", "in_work", "decided", "done", "quarantined", "dead_lettered"
]
"""The states of a traced file, in order; the last two are failures."""

_WAY: tuple[Stage, ...] = ("unknown", "claimed", "pending", "waiting", "in_work", "decided", "done")

HOPS: dict[str, str] = {
    "sent": "the file is in the input",
    "claimed": "S3 announced it, and the builder claimed it",
    "pending": "it waits in a pending part",
    "waiting": "its manifest is written",
    "in_work": "a run began its manifest",
    "decided": "its manifest is committed",
    "done": "its output is published",
    "row": "its row is in the output",
    "cleaned": "its input, row and records are gone",
}
"""Each hop of a canary, in words."""

_MOVES: dict[Stage, str] = {
    "unknown": "check the notifications of the input, the queue <job>-events, the log of <job>-manifest-builder",
    "claimed": "read the log /aws/lambda/<job>-manifest-builder",
    "pending": "read the log /aws/lambda/<job>-manifest-sealer; builder.max_wait_seconds is the longest wait",
    "waiting": "run compactor status; read the logs /aws/lambda/<job>-control-plane and /aws-glue/<job>/output",
    "in_work": "read the log /aws-glue/<job>/output; compactor trace has the attempts",
    "decided": "read the log /aws-glue/<job>/output; the role of the job may lack rights for the output",
}


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a canary.

    Attributes:
        stage: Its state.
        manifest_id: The manifest that lists it; empty if there is none yet.
        date: The date of that manifest; empty if unknown.
        message: Why it failed; else empty.
    """

    stage: Stage
    manifest_id: str = ""
    date: str = ""
    message: str = ""

    @property
    def key(self) -> ManifestKey:
        return ManifestKey(self.date, self.manifest_id)

    @property
    def has_failed(self) -> bool:
        """Whether it will never become a row without an operator."""
        return self.stage not in _WAY


@dataclass(frozen=True, slots=True)
class Hop:
    """A hop of a canary."""

    name: str  # the hop, as one word
    seconds: float  # time from sending to this observation


def passed(before: Stage, now: Stage) -> tuple[Stage, ...]:
    """The hops between two observed stages, including those too short to be seen."""
    return _WAY[_WAY.index(before) + 1 : _WAY.index(now) + 1] if now in _WAY else ()


def next_move(progress: Progress, job_name: str) -> str:
    """What to check where a canary stopped."""
    if progress.has_failed:
        return f"fix the cause in the message; compactor trace {quoted(progress.manifest_id)}"
    return _MOVES.get(progress.stage, "compactor trace shows the known facts").replace("<job>", job_name)


class CanaryStopped(Exception):
    """A canary did not become a row in time, or never will."""

    def __init__(self, progress: Progress) -> None:
        super().__init__(progress.message or f"it stopped at {progress.stage}")
        self.progress = progress


@dataclass(frozen=True, slots=True, kw_only=True)
class CanaryChecker:
    """Checks one deployment.

    Attributes:
        date: The date in the canary's name.
        has_rescued: Whether the output keeps keys without a column.
        look: Returns the progress of a file.
        pause: Waits for some seconds.
        seconds: A monotonic clock.
    """

    state: State
    input_place: str
    date: str
    has_rescued: bool
    look: Callable[[str], Progress]
    pause: Callable[[float], None]
    seconds: Callable[[], float]

    def leftovers(self) -> Iterator[str]:
        """Remove canaries of checks that ended long ago or were interrupted; yields their URIs."""
        now = self.state.clock.now()
        for account in accounts(self.state, Scope(date=self.date)):
            commit = account.checked().commit
            if commit is None or (now - commit.decided_at).total_seconds() < LEFT_SECONDS:
                continue
            if self.clean(account.key):
                yield from (report.uri for report in commit.files)

    def uri(self, canary_id: str) -> str:
        return f"{folder(self.input_place)}{FOLDER}{self.date}-{canary_id}.ndjson"

    def send(self, canary_id: str) -> str:
        """Write a canary; return its URI."""
        uri = self.uri(canary_id)
        line = json.dumps({"compactor_check".ljust(MAX_KEY_CHARACTERS + 1, "_"): canary_id})
        self.state.store.put(uri, line.encode() + b"\n")
        return uri

    def follow(self, uri: str, timeout_seconds: float) -> Iterator[tuple[Hop, Progress]]:
        """Yield each hop as it is seen, until the output is published.

        Raises:
            CanaryStopped: It failed, or timed out.
        """
        began = self.seconds()
        stage: Stage = "unknown"
        yield Hop("sent", 0.0), Progress(stage)
        while stage != "done":
            progress = self.look(uri)
            taken = self.seconds() - began
            for name in passed(stage, progress.stage):
                yield Hop(name, taken), progress
            if progress.has_failed or (progress.stage != "done" and taken > timeout_seconds):
                raise CanaryStopped(progress)
            stage = stage if progress.stage == "unknown" else progress.stage
            if stage != "done":
                self.pause(POLL_SECONDS)

    def has_row(self, canary_id: str, key: ManifestKey) -> bool:
        """Whether the output of a published manifest is exactly the row of a canary, with its value."""
        commit = self._commit(key)
        rows = [row for file in (commit.outputs if commit else ()) for row in self._rows(file.final)]
        values = [dict(row.get(RESCUED_COLUMN) or ()).values() for row in rows]
        return len(rows) == 1 and (not self.has_rescued or any(canary_id in str(each) for each in values[0]))

    def clean(self, key: ManifestKey) -> bool:
        """Remove a published canary: its output and input, then the records by which a later check would find it.

        Returns whether it was removed: not while a run still cleans up after it, nor if its manifest has other files.
        """
        layout, store = self.state.layout, self.state.store
        commit, canaries = self._commit(key), folder(self.input_place) + FOLDER
        if commit is None or not all(is_within(report.uri, canaries) for report in commit.files):
            return False
        if any(store.stat(place) is not None for place in (layout.open_marker(key.id), layout.manifest(key.id))):
            return False
        store.delete([file.final for file in (*commit.outputs, *commit.rejects)])
        store.delete([*(report.uri for report in commit.files), layout.archived_manifest(key)])
        # The record of its pending part stays, so that S3 may announce the file again.
        records = [info.uri for info in store.list(layout.ledger_records(key))]
        store.delete([*records, layout.unsummarised(key), layout.accepted(key.id)])
        return True

    def _commit(self, key: ManifestKey) -> Commit | None:
        [account] = accounts(self.state, Scope(keys=[key]))
        return account.checked().commit

    def _rows(self, uri: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = pq.read_table(BytesIO(self.state.store.read(uri))).to_pylist()
        return rows
