"""What an attack is: its name, how to make its input, and what must come of it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from compactor.core.ports import ObjectStore
from compactor.engines.engine import Engine

if TYPE_CHECKING:
    from tests.hostile.scene import Scene

MIB = 1024 * 1024
MEMORY_BYTES = 768 * MIB
"""How much more memory an attack may take than the honest manifests alone."""

SCRATCH_BYTES = 256 * MIB
"""The most scratch space at once."""

KEPT_BYTES = 256 * MIB
"""The most bytes that may be kept for good because of an attack, rows of good lines included."""

SLOWER = 2.0
GRACE_SECONDS = 2.0
"""The honest manifests may take so many times their time alone, and these seconds for what other programs take."""


@dataclass(frozen=True)
class Seen:
    """What came of the manifests of an attack. Files and lines are those of the attacker alone.

    Attributes:
        letters: Dead letters by reason.
        statuses: Files of committed manifests by status.
        rows: Rows of committed manifests.
        rejects: Rejected lines by reason.
        stuck: Manifests that only a person can fix; they stay in the watched prefix.
        retrying: Manifests that had no outcome when the run ended.
        discrepancies: What `verify --deep` finds.
    """

    letters: Mapping[str, int] = field(default_factory=dict)
    statuses: Mapping[str, int] = field(default_factory=dict)
    rows: int = 0
    rejects: Mapping[str, int] = field(default_factory=dict)
    stuck: int = 0
    retrying: int = 0
    discrepancies: int = 0


@dataclass(frozen=True, kw_only=True)
class Attack:
    """One attack.

    Attributes:
        name: As `python -m tests.hostile NAME` takes it.
        kind: Attacks of one kind go the same way; `make test` runs the quick ones.
        make: Writes the input and the manifests.
        expected: What must come of it; None for anything that is an outcome and no discrepancy.
        sections: Settings, beside those of every scene.
        columns: The schema file; nothing for none.
        form: The form of all input; see `Neighbours`.
        instead: Delivers honest input, which the neighbours have beside them where they are compared with.
        store: Wraps the store, for what a plain folder cannot do; the Spark engine cannot take it.
        engine: Wraps the engine, for manifests that kill its workers.
        also: A further check after the run; returns what is wrong.
        quick: `make test` runs it.
        memory_bytes: Its bound of memory, where that is not the usual one.
        engines: The engines that it is tried on.
    """

    name: str
    kind: str
    make: Callable[["Scene"], None]
    expected: Seen | None
    sections: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    columns: str = ""
    form: str = "lines"
    instead: Callable[["Scene"], None] | None = None
    store: Callable[[ObjectStore], ObjectStore] | None = None
    engine: Callable[[Engine], Engine] | None = None
    also: Callable[["Scene"], str] | None = None
    quick: bool = False
    memory_bytes: int = MEMORY_BYTES
    engines: Sequence[str] = ("native", "spark")
