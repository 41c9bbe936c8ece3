"""The progress of a canary file, and what to check if it stops. Values and decisions, no I/O."""

from dataclasses import dataclass
from typing import Literal

from compactor.core.layout import ManifestKey
from compactor.core.text.safe_text import quoted

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
