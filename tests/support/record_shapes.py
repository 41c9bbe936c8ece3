"""The shape of each kind of stored record: every key with its type, its words, and whether it is required."""

from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter

from compactor.control.gathering import BreakerClosed, JobSeen
from compactor.control.notices import Told
from compactor.core.documents.chains.kafka_records import KafkaLink, KafkaOrigin, TopicProgress
from compactor.core.documents.chains.kinesis_records import (
    KinesisDraft,
    KinesisFirstPlan,
    KinesisLink,
    KinesisLoss,
    KinesisOrigin,
    KinesisProgress,
    KinesisSeen,
)
from compactor.core.documents.closed_dates import ClosedDate, ClosedTotals, ClosingBegun
from compactor.core.documents.dismissals import Dismissal
from compactor.core.documents.erasures import Erasure, ErasureDone
from compactor.core.documents.expired import Expired
from compactor.core.documents.formats import FORMATS
from compactor.core.documents.manifest import Manifest
from compactor.core.documents.records import (
    OUTCOME,
    Accepted,
    Attempt,
    AttemptFailure,
    AttemptsFolded,
    ClaimsEntry,
    Done,
    LastCleaning,
    LastClosing,
    OpenMarker,
    RecentCommit,
    Redrive,
    RunHeartbeat,
)
from compactor.core.documents.table_records import (
    DoomedMetadata,
    FinishedBatches,
    HeldManifest,
    LastUpkeep,
    RefusedBatch,
    ReleasedParts,
    TableBatch,
    TableMerge,
    TableProgress,
)
from compactor.schema.schema import SchemaVersion

MODELS: Mapping[str, Any] = {
    "Outcome": OUTCOME,
    **{
        model.__name__: TypeAdapter(model)
        for model in (
            Accepted,
            Dismissal,
            Attempt,
            AttemptFailure,
            AttemptsFolded,
            BreakerClosed,
            ClaimsEntry,
            ClosedDate,
            ClosedTotals,
            ClosingBegun,
            Done,
            Erasure,
            ErasureDone,
            Expired,
            DoomedMetadata,
            FinishedBatches,
            HeldManifest,
            JobSeen,
            KafkaLink,
            KafkaOrigin,
            KinesisDraft,
            KinesisFirstPlan,
            KinesisLink,
            KinesisLoss,
            KinesisOrigin,
            KinesisProgress,
            KinesisSeen,
            LastCleaning,
            LastClosing,
            LastUpkeep,
            Manifest,
            OpenMarker,
            RecentCommit,
            Redrive,
            RefusedBatch,
            ReleasedParts,
            RunHeartbeat,
            SchemaVersion,
            TableBatch,
            TableMerge,
            TableProgress,
            TopicProgress,
            Told,
        )
    },
}
"""How each kind of record is parsed."""

Shape = dict[str, str]
"""By path, such as `files[].uri`: the type, `= words` for an enumeration, and `required`."""


def records() -> dict[str, dict[str, Any]]:
    """For each kind of record, the formats of this release and the shape of the one that it writes."""
    return {
        kind: {"reads": FORMATS[kind].reads, "writes": FORMATS[kind].writes, "shape": shape_of(adapter)}
        for kind, adapter in sorted(MODELS.items())
    }


def shape_of(adapter: Any) -> Shape:
    """The shape of one kind of record."""
    schema = adapter.json_schema()
    shape: Shape = {}
    _walk(schema, "", schema.get("$defs", {}), shape)
    return dict(sorted(shape.items()))


def lost_in(before: Shape, now: Shape) -> list[str]:
    """What the reader of one shape misses in records of the other, each as a sentence.

    Args:
        before: The shape of an earlier release.
        now: The shape of this one, in the same format.
    """
    gone = [f"{path} is gone" for path in before.keys() - now.keys()]
    changed = [
        f"{path} is {now[path]!r}, was {before[path]!r}"
        for path in before
        if now.get(path, before[path]) != before[path]
    ]
    added = [f"{path} is new and required" for path in now.keys() - before.keys() if _is_missed(path, now, before)]
    return sorted([*gone, *changed, *added])


def _is_missed(path: str, now: Shape, before: Shape) -> bool:
    """Whether earlier records lack a key that has to be there; one below a new optional key is not missed."""
    above = path.rpartition(".")[0].removesuffix("[]").removesuffix(".*")
    return now[path].endswith("required") and (not above or above in before)


def _walk(node: Mapping[str, Any], path: str, named: Mapping[str, Any], shape: Shape, mark: str = "") -> None:
    node = {**named[node["$ref"].rpartition("/")[2]], **node} if "$ref" in node else node
    if "oneOf" in node and "discriminator" in node:
        for word, place in node["discriminator"]["mapping"].items():
            _walk({"$ref": place}, word, named, shape)
        return
    options = [each for each in node.get("anyOf", [node]) if each.get("type") != "null"]
    kinds = []
    for each in options:
        found = {**named[each["$ref"].rpartition("/")[2]], **each} if "$ref" in each else each
        words = found.get("enum") or ([found["const"]] if "const" in found else [])
        kinds.append(found.get("type", "any") + (f" = {' '.join(sorted(words))}" if words else ""))
        _inner(found, path, named, shape)
    kinds += ["null"] if len(options) < len(node.get("anyOf", options)) else []
    if path:
        shape[path] = " or ".join(kinds) + mark


def _inner(node: Mapping[str, Any], path: str, named: Mapping[str, Any], shape: Shape) -> None:
    required = node.get("required", ())
    for key, each in node.get("properties", {}).items():
        _walk(each, f"{path}.{key}" if path else key, named, shape, ", required" if key in required else "")
    if isinstance(node.get("items"), Mapping):
        _walk(node["items"], f"{path}[]", named, shape)
    if isinstance(node.get("additionalProperties"), Mapping):
        _walk(node["additionalProperties"], f"{path}.*", named, shape)
