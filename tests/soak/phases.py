"""The phases of a soak: what is fed, what goes wrong, and whether the job is killed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from tests.soak.supervisor import Ending


class Weather(StrEnum):
    """What becomes of calls to S3."""

    CLEAR = "clear"
    CHANGING = "changing"
    BROWN_OUT = "brown-out"


class Feed(StrEnum):
    """What is delivered."""

    ANYTHING = "anything"
    STEADY = "steady"  # honest manifests of one size, as fast as the job takes them


@dataclass(frozen=True, slots=True)
class Phase:
    """One phase.

    Attributes:
        share: Of the time of the soak.
        endings: How often the job ends in each way, in relation to the others; empty for a job that is left alone.
        kills_per_minute: At least, however slowly the job starts on this machine.
        trouble_seconds: Between two deliveries of denied objects or worker killers; 0 for none.
        burst: How many of them are delivered at the beginning of the phase.
        is_measured: Whether the throughput counts.
    """

    name: str
    share: float
    weather: Weather = Weather.CHANGING
    feed: Feed = Feed.ANYTHING
    endings: Mapping[Ending, int] = field(default_factory=dict)
    kills_per_minute: float = 2.5
    trouble_seconds: float = 0.0
    burst: int = 0
    is_measured: bool = False


CALM = "calm"
TROUBLE = "trouble"

_ALL = {Ending.KILL_ALL: 3, Ending.KILL_JVM: 2, Ending.KILL_PARENT: 2, Ending.TERMINATE: 1}
_SLOW = 15.0

_ON_SPARK: Sequence[Phase] = (
    Phase("warm-up", 0.05, Weather.CLEAR),
    Phase(CALM, 0.1, Weather.CLEAR, Feed.STEADY, is_measured=True),
    Phase(TROUBLE, 0.125, Weather.CLEAR, Feed.STEADY, trouble_seconds=10.0, burst=16, is_measured=True),
    Phase("kills", 0.1, endings=_ALL, trouble_seconds=_SLOW),
    # While most calls fail, a job takes long to come to work, and may take longer than any patience to end by itself.
    Phase(
        "brown-out with kills",
        0.25,
        Weather.BROWN_OUT,
        endings={Ending.KILL_ALL: 1},
        kills_per_minute=0.0,
        trouble_seconds=_SLOW,
    ),
    Phase("kills again", 0.075, endings=_ALL, trouble_seconds=_SLOW),
    Phase("brown-out", 0.25, Weather.BROWN_OUT, trouble_seconds=_SLOW),
    Phase("kills at last", 0.05, endings=_ALL, trouble_seconds=_SLOW),
)
"""Of 20 minutes: calm takes 2, trouble 2.5, each brown-out 5."""

AFTERMATH = Phase("aftermath", 0.0, Weather.CLEAR)

# A plain job has no JVM, and ends whenever nothing is left to do: its throughput would tell nothing.
_PLAIN: Sequence[Phase] = (Phase("kills", 1.0, endings={Ending.KILL_ALL: 3, Ending.TERMINATE: 1}, trouble_seconds=2.0),)


def phases(engine: str, *, on_s3: bool) -> list[Phase]:
    """The phases of a soak; plain folders have no trouble to offer, and no bad weather.

    Args:
        engine: `spark` or `native` on Spark, or `plain` without it.
        on_s3: Whether S3 may refuse calls.
    """
    on_spark = _ON_SPARK if on_s3 else (Phase("kills", 1.0, endings=_ALL),)
    chosen = _PLAIN if engine == "plain" else on_spark
    return [each if on_s3 else replace(each, trouble_seconds=0.0) for each in chosen]
