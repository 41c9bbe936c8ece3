"""What the control plane can do, each with its reason in words. Values, no I/O."""

from dataclasses import dataclass
from enum import StrEnum


class ActionKind(StrEnum):
    """What is to be done."""

    START = "start"
    """Start a run of the job."""

    ASK_TO_STOP = "ask_to_stop"
    """Ask runs of the compactor to end after the batch in flight."""

    STOP = "stop"
    """Have Glue stop a run, as by a kill."""

    WAIT = "wait"
    """Leave the job as it is."""

    ALARM = "alarm"
    """Tell a person."""

    ADVISE = "advise"
    """Say what a person may want to change."""


@dataclass(frozen=True, slots=True)
class Action:
    """One thing to do.

    Attributes:
        kind: What.
        reason: Why, in words.
        targets: The runs it is about.
        about: For alarms and advice: what it is about, in one word that stays while its cause does.
    """

    kind: ActionKind
    reason: str
    targets: tuple[str, ...] = ()
    about: str = ""
