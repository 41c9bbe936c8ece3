"""Compares what the code does with the model: the states that a file or manifest goes through are a behaviour of it.

A state is what the store shows after a change, in the words of the model.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from pathlib import Path

from compactor.core.documents.changes import OUTCOME, Commit
from compactor.core.layout import Layout, ManifestKey, digest
from compactor.core.ports import ObjectStore
from tests.protocol.configurations import Configuration, first_change
from tests.protocol.tlc import explore

_ATTEMPT = re.compile(r"attempt-(\d+)\.json")
_REACHED = re.compile(r'<<"reached", (\d+), (\d+)>>')
DEAD = -1
MANY = 100  # traces that take longer than Java takes to start

SEEN = {
    "Claims": r"""
Seen == [claim |-> claim["f1"], fates |-> [i \in Ids |-> fate[i]], written |-> written, pending |-> pending # {}]
""",
    "Change": r"""
Seen == [delivered |-> delivered, accepted |-> accepted, open |-> marker # {}, number |-> number, kept |-> kept,
         staged |-> {a \in Attempts : staged[a] # {}}, outcome |-> decided[1].attempt, first |-> visible[1] # NoFile,
         last |-> visible[2] # NoFile, done |-> 1 \in done, original |-> original # "none"]
""",
    "Closing": r"""
Seen == [delivered |-> delivered, whole |-> whole, open |-> open, decided |-> <<decided[11], decided[12]>>,
         done |-> <<done[11], done[12]>>, marks |-> marks, dates |-> {mark[1] : mark \in dateMarks}, begun |-> begun,
         log |-> [p \in 1..Len(log) |-> log[p].members], back |-> [p \in 1..Len(log) |-> Cardinality(log[p].back)]]
""",
    "Shards": r"""
Seen == [beats |-> beat, views |-> view, taking |-> taking, last |-> last, outcome |-> outcome, done |-> done]
""",
    "Landing": r"""
Seen == LET p == <<1, "k1">> IN
        [end |-> end[p], earliest |-> earliest[p], origin |-> origin[p],
         links |-> {<<o, link[p][o].end, link[p][o].id>> : o \in Links(p)}, drafts |-> drafts, written |-> written]
""",
}
"""What a state of a trace shows of the variables of a module."""

DEFINITIONS = r"""
VARIABLES trace, position
Ahead == Traces[trace][position + 1]
TraceInit == /\ Init
             /\ trace \in 1..Len(Traces)
             /\ position = 1
             /\ Seen = Traces[trace][1].state
             /\ TLCSet(trace, 0)
TraceNext == /\ Next
             /\ UNCHANGED trace
             /\ \/ /\ position < Len(Traces[trace])
                   /\ Seen' = Ahead.state
                   /\ position' = position + 1
                \/ /\ Seen' = Seen \/ (position < Len(Traces[trace]) /\ Ahead.gap)
                   /\ UNCHANGED position
TraceSpec == TraceInit /\ [][TraceNext]_<<vars, trace, position>>
Told == TLCGet(trace) < position => TLCSet(trace, position) /\ PrintT(<<"reached", trace, position>>)
"""


@dataclass(frozen=True, slots=True)
class Seen:
    """What the store shows of a manifest.

    Attributes:
        kept: The attempts whose verified commits were kept at some time.
        staged: The attempts that have files in their staging.
        outcome: The attempt of the commit, `DEAD`, or 0.
        first: Whether the first file of the commit is in its final place.
        last: Whether the last one is.
    """

    delivered: bool
    accepted: bool = False
    open: bool = False
    number: int = 0
    kept: frozenset[int] = frozenset()
    staged: frozenset[int] = frozenset()
    outcome: int = 0
    first: bool = False
    last: bool = False
    done: bool = False
    original: bool = False


@dataclass(frozen=True, slots=True)
class Claimed:
    """What the table of claims, the store and the queue show of one file.

    Attributes:
        claim: The id that holds it, by its number.
        fates: Of each id.
        written: The ids whose manifests are in the watched prefix.
        pending: Whether its message is not acknowledged.
    """

    claim: int
    fates: tuple[str, ...]
    written: frozenset[int]
    pending: bool


Member = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Summed:
    """What the store shows of two manifests, 11 and 12, of two dates, 1 and 2; each end with its generation.

    Attributes:
        whole: Those whose files are all there.
        decided: The generation of each that is decided.
        dates: Those that have a mark of their own.
        log: The members of each summary, by its place.
        back: How many ends each summary takes back.
    """

    delivered: frozenset[int]
    whole: frozenset[int]
    open: frozenset[Member]
    decided: tuple[int, ...]
    done: tuple[int, ...]
    marks: frozenset[Member]
    dates: frozenset[int]
    begun: bool
    log: tuple[frozenset[Member], ...]
    back: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Shared:
    """What the store shows of one manifest and of the jobs side by side, and the jobs of what they know of each other.

    Attributes:
        beats: The heartbeat of each job: none, fresh or old.
        views: The shards that each job believes to be there.
        taking: Whether each takes manifests.
        last: The job of the last attempt; 0 for none.
        outcome: The job whose attempt was decided; 0 for none.
    """

    beats: tuple[str, ...]
    views: tuple[frozenset[int], ...]
    taking: tuple[bool, ...]
    last: int
    outcome: int
    done: bool


@dataclass(frozen=True, slots=True)
class Chained:
    """What brokers and store show of one partition.

    Attributes:
        end: The offsets that it ever had.
        earliest: The first one that retention has left.
        origin: Where its chain begins.
        links: Its links, each with its first offset, its end, and the number of its manifest.
        drafts: The manifests whose drafts are there.
        written: Those that are written.
    """

    end: int
    earliest: int
    origin: int
    links: frozenset[tuple[int, int, int]]
    drafts: frozenset[int]
    written: frozenset[int]


State = Seen | Claimed | Summed | Shared | Chained


@dataclass(slots=True)
class Trace:
    """The states of one manifest or file, each once.

    Attributes:
        name: Says which test recorded it.
        states: In their order.
        gaps: The positions of states before which others may have gone unseen, as a process died.
    """

    name: str
    states: list[State] = field(default_factory=list)
    gaps: set[int] = field(default_factory=set)

    def add(self, state: State, *, gap: bool = False) -> None:
        """Add a state, unless nothing has changed."""
        before = self.states[-1] if self.states else None
        if isinstance(before, Seen) and isinstance(state, Seen):
            state = replace(state, kept=before.kept | state.kept)
        if before == state or (before is None and isinstance(state, Seen) and not state.delivered):
            return
        if gap:
            self.gaps.add(len(self.states))
        self.states.append(state)


def seen(store: ObjectStore, layout: Layout, key: ManifestKey) -> Seen:
    """What a store shows of a manifest now."""

    def exists(uri: str) -> bool:
        return store.stat(uri) is not None

    names = [info.uri.rpartition("/")[2] for info in store.list(layout.ledger_records(key))]
    staging = layout.staging_of(key.id)
    staged = {info.uri.removeprefix(staging) for info in store.list(staging)}
    outcome, finals = 0, []
    if "outcome.json" in names:
        found = OUTCOME.validate_json(store.read(layout.outcome(key)))
        outcome = found.attempt if isinstance(found, Commit) else DEAD
        finals = [file.final for file in (*found.outputs, *found.rejects)] if isinstance(found, Commit) else []
    return Seen(
        delivered=exists(layout.manifest(key.id)),
        accepted=exists(layout.accepted(key.id)),
        open=exists(layout.open_marker(key.id)),
        number=max((int(found[1]) for name in names if (found := _ATTEMPT.fullmatch(name))), default=0),
        kept=frozenset(int(name.split("/")[0]) for name in staged if name.endswith("/verified.json")),
        staged=frozenset(int(name.split("/")[0]) for name in staged),
        outcome=outcome,
        first=bool(finals) and exists(finals[0]),
        last=bool(finals) and exists(finals[-1]),
        done="done.json" in names,
        original=exists(layout.archived_manifest(key)) or exists(layout.failed_manifest(key.id)),
    )


@dataclass(frozen=True, slots=True)
class Recorder:
    """Writes a line for the state of each manifest after each change, for traces across processes."""

    file: Path
    layout: Layout
    keys: Sequence[ManifestKey]

    def note(self, store: ObjectStore, *, begins: bool = False) -> None:
        """Write down what the store shows now.

        Args:
            store: Where all of it is.
            begins: Whether a process begins: the one before may have died before it could write.
        """
        states = {key.id: asdict(seen(store, self.layout, key)) for key in self.keys}
        with self.file.open("a") as file:
            file.write(json.dumps({"begins": begins, "states": states}, default=sorted) + "\n")


def recorded(name: str, file: Path) -> Iterator[Trace]:
    """The trace of each manifest that a recorder has written down."""
    traces: dict[str, Trace] = {}
    for line in file.read_text().splitlines():
        written = json.loads(line)
        for manifest_id, state in written["states"].items():
            values = {key: frozenset(value) if isinstance(value, list) else value for key, value in state.items()}
            trace = traces.setdefault(manifest_id, Trace(f"{name}: {manifest_id}"))
            trace.add(Seen(**values), gap=written["begins"])
    yield from (trace for trace in traces.values() if trace.states)


def strays(traces: Sequence[Trace], *, stops: int = 3, drivers: str = "{d1}") -> list[str]:
    """The traces of manifests that are no behaviour of `Change`, each with the first change that is not.

    Args:
        traces: Any number.
        stops: How often a driver dies in one of them at most.
        drivers: Those that work on a manifest at the same time.
    """
    attempts = max(1, *(state.number for trace in traces for state in trace.states if isinstance(state, Seen)))
    return strays_of(first_change(drivers, attempts, stops), traces)


def strays_of(configuration: Configuration, traces: Sequence[Trace]) -> list[str]:
    """The traces that are no behaviour of a configuration, each with the first change that is not.

    Args:
        configuration: Of a module that `SEEN` has; it says how many processes may stop, and how often.
        traces: Any number. Each sequence of states is compared once.
    """
    module = configuration.module
    traces = [*{fingerprint(trace): trace for trace in traces}.values()]
    told = "Traces == <<\n" + ",\n".join(_tla(trace) for trace in traces) + "\n>>"
    definitions, text = replace(configuration, alike=()).texts("TraceSpec")
    definitions = [*definitions, told, SEEN[module], DEFINITIONS]
    explored = explore(module, definitions, f"{text}INVARIANT Told\n", is_short=len(traces) < MANY)
    if explored.violated:
        return [f"a trace violates {explored.violated}:\n{explored.printed}"]
    reached = dict.fromkeys(range(1, len(traces) + 1), 0)
    for number, position in _REACHED.findall(explored.printed):
        reached[int(number)] = max(reached[int(number)], int(position))
    return [_told(traces[number - 1], at) for number, at in reached.items() if at < len(traces[number - 1].states)]


def _told(trace: Trace, reached: int) -> str:
    before = asdict(trace.states[reached - 1]) if reached else {}
    after = asdict(trace.states[reached])
    changed = {name: value for name, value in after.items() if before.get(name) != value}
    return f"{trace.name}: in state {reached} of {len(trace.states)}, {before}, the model knows no step to {changed}"


def _tla(trace: Trace) -> str:
    states = (
        f"[gap |-> {_value(at in trace.gaps)}, state |-> {_record(each)}]" for at, each in enumerate(trace.states)
    )
    return "<<" + ", ".join(states) + ">>"


def _record(state: State) -> str:
    values: Mapping[str, object] = asdict(state)
    return "[" + ", ".join(f"{name} |-> {_value(value)}" for name, value in values.items()) + "]"


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, frozenset):
        return "{" + ", ".join(map(_value, sorted(value))) + "}"
    if isinstance(value, tuple):
        return "<<" + ", ".join(map(_value, value)) + ">>"
    return f'"{value}"' if isinstance(value, str) else str(value)


def fingerprint(trace: Trace) -> str:
    """The same for traces of the same states, so that each of them is checked once."""
    return digest(json.dumps([[asdict(state) for state in trace.states], sorted(trace.gaps)], default=sorted).encode())


def damaged(trace: Trace) -> Iterator[Trace]:
    """The same trace with one state left out, wherever two changes then come at once."""
    for left_out in range(1, len(trace.states) - 1):
        states = trace.states[:left_out] + trace.states[left_out + 1 :]
        if all(before != after for before, after in pairwise(states)) and left_out + 1 not in trace.gaps:
            yield Trace(f"{trace.name} without state {left_out}", states)
