"""Actions of the control plane, each with its reason in words. Values, no I/O."""

from dataclasses import dataclass
from enum import StrEnum


class ActionKind(StrEnum):
    """The kind of an action."""

    START = "start"  # start a run of the job
    ASK_TO_STOP = "ask_to_stop"  # ask runs of the compactor to stop after the manifests in flight
    STOP = "stop"  # have the service stop a run, which kills it
    WAIT = "wait"  # leave the job as it is
    ALARM = "alarm"  # tell people that something is wrong
    ADVISE = "advise"  # suggest a change of size


@dataclass(frozen=True, slots=True)
class Action:
    """One thing to do."""

    kind: ActionKind
    reason: str
    targets: tuple[str, ...] = ()  # ids of the runs it is about
    # The name of the finding behind an alarm or advice, which stays as long as its cause does; else empty
    about: str = ""
