"""Derives the types of JSON documents from the values that commands print."""

import re
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from functools import cache, reduce
from inspect import getdoc, getsource
from operator import or_
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

Time = Annotated[
    str,
    WithJsonSchema({"type": "string", "format": "date-time", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$"}),
]
"""A time in UTC, as ISO 8601 with `Z`."""

Date = Annotated[str, WithJsonSchema({"type": "string", "format": "date", "pattern": r"^\d{4}-\d\d-\d\d$"})]
"""A calendar day, `yyyy-mm-dd`."""

DESCRIPTIONS = {
    "actions": "Decisions, the most urgent first.",
    "as_of": "Time of the reading.",
    "basis": "Whether the quantity was given, counted from the code, or assumed.",
    "blank_lines": "Number of blank lines.",
    "by_reason": "Rejected lines by reason.",
    "by_status": "Quarantined files by status.",
    "created_at": "Time of the creation.",
    "attempts": "Attempts, in their order.",
    "columns": "Number of columns.",
    "date": "Date of the manifest.",
    "dead_letter_manifests": "Dead letters.",
    "decided_at": "Time of the decision.",
    "decoded_bytes": "Size of the compacted input files after decoding.",
    "dollars_at_work": "Cost of the workers for the time at work.",
    "dollars_elapsed": "Cost of the workers for the whole time.",
    "dollars_per_hour": "Cost per hour.",
    "dollars_per_month": "Cost per month of 730 hours.",
    "dollars_per_terabyte": "Cost per terabyte of stored input.",
    "dollars_per_terabyte_at_work": "Cost of the time at work per terabyte; null without input.",
    "dollars_per_terabyte_elapsed": "Cost of the whole time per terabyte; null without input.",
    "engine": "Engine that converts the files.",
    "error": "Error in words; empty if there is none.",
    "files": "Number of files.",
    "heartbeat_at": "Time of the last heartbeat.",
    "heartbeats": "Heartbeats of all runs; null if unknown.",
    "input_bytes": "Stored size of the compacted input files.",
    "input_files": "Number of compacted input files.",
    "item": "What is paid for.",
    "kind": "What was redriven, or would be.",
    "latency": "Time from arrival to visible; null without commits.",
    "lines": "Number of lines.",
    "longest_seconds": "The longest.",
    "manifest_id": "Id of the manifest.",
    "manifests": "Number of manifests.",
    "message": "What is wrong, where, and what was expected.",
    "number": "Number of the attempt, from 1.",
    "output_bytes": "Size of the Parquet files with rows.",
    "output_files": "Number of Parquet files with rows.",
    "p50_seconds": "Half took at most this long.",
    "p99_seconds": "99 % took at most this long.",
    "reason": "Reason, as one word.",
    "records": "Number of rows.",
    "redriven": "What was redriven, or would be.",
    "redriven_as": "Later manifests that have it again.",
    "refused": "What cannot be redriven.",
    "rejected_lines": "Number of rejected lines.",
    "rejects_by_reason": "Rejected lines by reason.",
    "rows": "Number of rows.",
    "run_id": "Id of the run.",
    "runs": "Living runs.",
    "service": "AWS service.",
    "severity": "Whether a person has to act, or to check.",
    "started_at": "Time of the start.",
    "uri": "URI of the file.",
    "version": "Number of the version, from 1.",
    "word": "State, as one word.",
}
"""Descriptions of keys that mean the same in every document. What a type says of its fields comes first."""

_ATTRIBUTE = re.compile(r"^    (\w+): (.+(?:\n {6,}.+)*)", re.MULTILINE)
_COMMENT = re.compile(r"^    (\w+): [^#\n]+  # (.+)$", re.MULTILINE)
_COMMENT_ABOVE = re.compile(r"^((?:    # .+\n)+)    (\w+): ", re.MULTILINE)


class Document(BaseModel):
    """A JSON object that has exactly the keys of its fields.

    A field whose type is a dataclass or a record holds the document of that type. A subclass with `of=TYPE` also has a
    key for each field of that type, without those in `without`, and for each property in `shown`. A field of its own
    replaces the type's.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    def __init_subclass__(cls, of: type | None = None, shown: Sequence[str] = (), without: Sequence[str] = ()) -> None:
        super().__init_subclass__()
        own = cls.__annotations__ = {name: json_type(hint) for name, hint in cls.__annotations__.items()}
        if of is None:
            return
        descriptions = DESCRIPTIONS | _descriptions(of)
        mirrored = {name: json_type(hint) for name, hint in _fields(of, shown).items() if name not in without}
        cls.__annotations__ = mirrored | own
        for name in mirrored.keys() - own.keys():
            setattr(cls, name, Field(description=descriptions.get(name)))


@cache
def document(of: type) -> type[Document]:
    """The document that has a key for each field of a type."""
    summary, _, _ = (of.__doc__ or "").partition("\n\n")
    return type(of.__name__, (Document,), {"__doc__": summary, "__module__": __name__, "__annotations__": {}}, of=of)


def json_type(hint: Any) -> Any:
    """The type of what is printed for a value."""
    if hint is datetime:
        return Time
    if isinstance(hint, type) and (is_dataclass(hint) or issubclass(hint, BaseModel)):
        return hint if issubclass(hint, Document) else document(hint)
    origin, parts = get_origin(hint), get_args(hint)
    if not parts or origin in {Annotated, Literal}:
        return hint
    inner = tuple(json_type(part) for part in parts)
    return reduce(or_, inner) if origin in {Union, UnionType} else origin[inner]


def _fields(of: Any, shown: Sequence[str]) -> dict[str, Any]:
    hints = {name: Date if name == "date" and hint is str else hint for name, hint in get_type_hints(of).items()}
    names = of.model_fields if issubclass(of, BaseModel) else [each.name for each in fields(of)]
    return {name: hints[name] for name in names} | {
        name: get_type_hints(getattr(of, name).fget)["return"] for name in shown
    }


def _descriptions(of: type) -> dict[str, str]:
    """What a type and its bases say of each field and property: in docstrings, or in a comment at the field."""
    found: dict[str, str] = {}
    for each in reversed(of.__mro__):
        texts = dict(_ATTRIBUTE.findall((getdoc(each) or "").partition("Attributes:\n")[2]))
        properties = {name: value.__doc__ for name, value in vars(each).items() if isinstance(value, property)}
        source = getsource(each) if is_dataclass(each) else ""
        above = {name: text.replace("# ", "") for text, name in _COMMENT_ABOVE.findall(source)}
        comments = above | dict(_COMMENT.findall(source))
        found |= {name: _sentence(text) for name, text in {**properties, **comments, **texts}.items() if text}
    return found


def _sentence(text: str) -> str:
    words = " ".join(text.split()).replace("None", "null")
    return words[0].upper() + words[1:].rstrip(".") + "."
