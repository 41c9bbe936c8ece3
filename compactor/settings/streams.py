"""The streams of a settings file: the contents of `[[streams]]`, and what several streams may not share. No I/O."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

from pydantic import Field

from compactor.core.inputs.source_places import Routes
from compactor.core.layout import Layout, folder, is_within
from compactor.settings import places, sections
from compactor.settings.types import StreamName
from compactor.settings.validation import Sections, Source, read_document, validate

MAX_STREAMS = 100
"""This many streams have their own metrics, alarms and expiry rules within the limits of one deployment."""

OWN_KEYS: Mapping[str, frozenset[str]] = {
    "paths": frozenset({"output"}),
    "input": frozenset(sections.Input.model_fields),
    "schema": frozenset(sections.Schema.model_fields),
    "output": frozenset(sections.Output.model_fields),
    "table": frozenset({"name"}),
    "convert": frozenset(sections.Convert.model_fields),
    "stream": frozenset({"max_attempts"}),
    "builder": frozenset({"target_manifest_bytes", "max_wait_seconds"}),
    "control": frozenset({"sla_seconds"}),
}
"""The keys that each stream may set, by section. All others are common to all streams."""


class OneStream(sections.Section):
    """One of several streams in a deployment. Tables such as `[streams.input]` below it set its own keys."""

    name: StreamName = Field(description="name of the stream: part of its places, and a dimension of its metrics")
    weight: int = Field(
        default=1, ge=1, le=1000, description="share of the shared job, in proportion to the weights of other streams"
    )
    job: Literal["shared", "own"] = Field(
        default="shared", description=('"shared": one job works on all such streams; "own": a job for this stream only')
    )
    canary: bool = Field(
        default=False,
        description="true: `make deploy CANARY=1` gives this stream a new release first; "
        'for one stream at most, with job = "own"',
    )


@dataclass(frozen=True, slots=True)
class Member:
    """Facts about the deployment in the settings of one stream.

    Attributes:
        stream: The name, the weight and the job.
        shared: The places at the top of the settings file, which contain those of the streams.
        routes: Maps objects to streams.
    """

    stream: OneStream
    shared: Layout
    routes: Routes

    def layout_of(self, name: str) -> Layout:
        """The places of a stream's manifests and state; those at the top for an empty name."""
        if not name:
            return self.shared
        paths = places_of(name, self.shared)
        return Layout(output=self.shared.output, **paths, pending=f"{self.shared.pending_folder}{name}")


@dataclass(slots=True)
class Entry:
    """One parsed entry of `[[streams]]`: the stream, and its own keys."""

    stream: OneStream
    source: Source


def places_of(name: str, shared: Layout) -> dict[str, str]:
    """The places of a stream's manifests, state and staging."""
    return {
        "manifests": f"{shared.manifests_folder}{name}",
        "state": f"{folder(shared.state)}streams/{name}",
        "staging": f"{folder(shared.staging)}streams/{name}" if shared.staging else "",
    }


def read_entries(entries: object, known: Sections, faults: list[str]) -> list[Entry]:
    """Read `[[streams]]`; adds the faults of single entries, and leaves such entries out."""
    if not isinstance(entries, list) or not 0 < len(entries) <= MAX_STREAMS:
        faults.append(f"streams -> expected 1 to {MAX_STREAMS} tables, each below a line [[streams]]")
        return []
    read = [entry for index, each in enumerate(entries) if (entry := _entry(index, each, known, faults))]
    names = [entry.stream.name for entry in read]
    repeated = sorted({name for name in names if names.count(name) > 1})
    faults += [f"streams.{name}: used {names.count(name)} times -> expected once" for name in repeated]
    faults += _canary_faults([entry.stream for entry in read])
    return [] if repeated else read


def _canary_faults(streams: Sequence[OneStream]) -> Iterator[str]:
    """Faults of the stream that gets a release first."""
    canaries = [each for each in streams if each.canary]
    if len(canaries) > 1:
        yield f"streams: canary = true in {', '.join(each.name for each in canaries)} -> expected in one at most"
    for each in canaries:
        if each.job != "own":
            yield f'streams.{each.name}.job: "{each.job}" -> expected "own", because it is the canary'


def _entry(index: int, table: object, known: Sections, faults: list[str]) -> Entry | None:
    if not isinstance(table, dict):
        faults.append(f"streams[{index}] -> expected a table")
        return None
    own = {key: value for key, value in table.items() if key in OneStream.model_fields}
    source = read_document({"streams": own}, {"streams": OneStream})
    stream = validate("streams", OneStream, source)
    faults += [fault.replace("streams.", f"streams[{index}].", 1) for fault in source.faults]
    if stream is None:
        return None
    source = read_document({key: value for key, value in table.items() if key not in own}, known)
    faults += [f"streams.{stream.name}.{fault}" for fault in (*source.faults, *_common(source))]
    if not source.values.get("input", {}).get("allowed_prefixes"):
        faults.append(f"streams.{stream.name}.input.allowed_prefixes: not set -> expected the folders of its input")
    return Entry(stream, source)


def _common(source: Source) -> Iterator[str]:
    """The keys that are common to all streams."""
    for section, values in source.values.items():
        own = OWN_KEYS.get(section, frozenset())
        for key in values.keys() - own:
            yield f"{section}.{key}: set for one stream -> expected at the top of the file, for all streams"


def merged(entry: Entry, common: Source, shared: Layout) -> Source:
    """The values of one stream: the common ones, unless it has its own."""
    name, own = entry.stream.name, entry.source.values
    derived: dict[str, dict[str, object]] = {
        "paths": {**places_of(name, shared), "output": f"{folder(shared.output)}{name}"},
    }
    if entry.stream.job == "own":
        job_name = common.values.get("control", {}).get("job_name", sections.Control.model_fields["job_name"].default)
        derived["control"] = {"job_name": f"{job_name}-{name}"}
    named = {*common.values, *derived, *own}
    values = {each: {**common.values.get(each, {}), **derived.get(each, {}), **own.get(each, {})} for each in named}
    replaced = {f"{section}.{key}" for part in (derived, own) for section, keys in part.items() for key in keys}
    return Source(values, {key: variable for key, variable in common.origins.items() if key not in replaced})


def _named_as_shards(streams: Sequence[Any], common: Any) -> Iterator[str]:
    """Streams whose own job would get the name of a shard's job."""
    jobs = {f"{common.control.job_name}-shard-{number}" for number in range(2, common.control.shards + 1)}
    for each in streams:
        if each.control.job_name in jobs:
            yield f"streams.{each.name}.name: its job would have the name of a shard -> expected a different name"


def crossing(streams: Sequence[Any], common: Any) -> Iterator[str]:
    """Conflicts between streams, and places outside those at the top of the file."""
    for each in streams:
        key = f"streams.{each.name}"
        for index, prefix in enumerate(each.input.allowed_prefixes):
            if not any(is_within(folder(prefix), above) for above in common.input.allowed_prefixes):
                above = ", ".join(common.input.allowed_prefixes)
                yield f"{key}.input.allowed_prefixes[{index}]: {prefix} -> expected a place within {above}"
        others = {f"paths.{key}": getattr(common.paths, key) for key in ("manifests", "state", "staging")}
        others |= {f"input.allowed_prefixes[{at}]": each for at, each in enumerate(common.input.allowed_prefixes)}
        for other, place in filter(all, others.items()):
            if places.overlap(each.paths.output, place):
                expected = f"a place that does not overlap {other} ({place})"
                yield f"{key}.paths.output: {each.paths.output} -> expected {expected}"
    yield from _named_as_shards(streams, common)
    for one, other in combinations(streams, 2):
        key, rival = f"streams.{other.name}", f"streams.{one.name}"
        for prefix in sorted({*one.input.allowed_prefixes} & {*other.input.allowed_prefixes}):
            yield (f"{key}.input.allowed_prefixes: {prefix} also belongs to {rival} -> expected it in only one stream")
        if places.overlap(one.paths.output, other.paths.output):
            apart = f"a place that does not overlap {rival} ({one.paths.output})"
            yield f"{key}.paths.output: {other.paths.output} -> expected {apart}"
        if one.schema.table and one.schema.table == other.schema.table:
            yield f"{key}.schema.table: {other.schema.table} also belongs to {rival} -> expected one per stream"
        yield from _of_one_table(key, rival, one, other)


def _of_one_table(key: str, rival: str, one: Any, other: Any) -> Iterator[str]:
    """Two streams whose files one table would list: its fence would claim the batches of both."""
    if one.table.name and one.table.name == other.table.name:
        yield f"{key}.table.name: {other.table.name} also belongs to {rival} -> expected one per stream"
