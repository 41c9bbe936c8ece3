"""The JSON Schemas of documents that commands print.

A schema says what the types of a command's results say (`json_option`): the keys are their fields and shown properties,
described by their docstrings and comments.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import is_dataclass
from datetime import datetime
from functools import cache, reduce
from inspect import getdoc, getsource
from operator import or_
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, WithJsonSchema, create_model

from compactor.cli import invocation
from compactor.cli.entry import SUMMARIES, command_of
from compactor.core.results import members

FOLDER = Path(invocation.__file__).parent / "schemas"
DIALECT = "https://json-schema.org/draft/2020-12/schema"

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


_DATES = {"date", "first_date", "last_date", "as_of"}
"""The keys of texts that are calendar days, unless they may be empty."""

_ATTRIBUTE = re.compile(r"^    (\w+): (.+(?:\n {6,}.+)*)", re.MULTILINE)
_COMMENT = re.compile(r"^    (\w+): [^#\n]+  # (.+)$", re.MULTILINE)
_COMMENT_ABOVE = re.compile(r"^((?:    # .+\n)+)    (\w+): ", re.MULTILINE)


def schema_of(name: str) -> dict[str, Any]:
    """The schema of the document that a command prints."""
    option = _json_options()[name]
    roots: list[Any] = [document(each) for each in option.prints]
    if option.has_streams:
        stream = (str, _field("stream", "Name of the stream."))
        one = create_model(f"Stream{roots[0].__name__}", __base__=roots[0], stream_=stream)
        one.__doc__ = "What is printed for one stream."
        streams = (list[one], _field("streams", "Streams, as in the settings."))
        several = create_model("Streams", __base__=_Document, streams_=streams)
        several.__doc__ = "What is printed for several streams."
        roots.append(several)
    schema = TypeAdapter(reduce(or_, roots)).json_schema(mode="serialization")
    return {"$schema": DIALECT, "title": f"compactor {name} --json", **_without_titles(schema)}


def _json_options() -> dict[str, invocation.JsonOption]:
    found = {
        name: [each for each in command_of(name).params if isinstance(each, invocation.JsonOption)]
        for name in SUMMARIES
    }
    return {name: options[0] for name, options in found.items() if options}


NAMES = tuple(_json_options())
"""The commands that print a JSON document."""


def file_of(name: str) -> Path:
    """The shipped schema of a command."""
    return FOLDER / invocation.schema_file(command_of(name))


def text_of(schema: dict[str, Any]) -> str:
    """The text of a shipped file."""
    return json.dumps(schema, indent=2) + "\n"


class _Document(BaseModel):
    """A JSON object that has exactly the keys of its fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def _field(name: str, description: str | None) -> Any:
    return Field(alias=name, description=description)


@cache
def document(of: type) -> type[_Document]:
    """The JSON object of a type."""
    made = create_model(of.__name__, __base__=_Document, __module__=of.__module__, **_keys(of))
    made.__doc__, _, _ = (of.__doc__ or "").partition("\n\n")
    return made


def _keys(of: type, names: Sequence[str] = ()) -> dict[str, Any]:
    """These keys of the documents of a type, or all, each with its type and what it means."""
    descriptions, hints = DESCRIPTIONS | descriptions_of(of), get_type_hints(of)
    found: dict[str, Any] = {}
    for name, inlined in [(name, None) for name in names] or members(of):
        hint = hints[name] if name in hints else get_type_hints(properties_of(of)[name].fget)["return"]
        description = descriptions.get(name)
        if inlined is not None:
            found |= _keys(hint, inlined)
        else:  # pydantic has attributes of its own, such as `schema`
            found[f"{name}_"] = (_date_or(hint, name, description), _field(name, description))
    return found


def _date_or(hint: Any, name: str, description: str | None) -> Any:
    is_date = hint is str and name in _DATES and "empty" not in (description or "")
    return Date if is_date else json_type(hint)


def json_type(hint: Any) -> Any:
    """The type of what is printed for a value."""
    if hint is datetime:
        return Time
    if isinstance(hint, type) and (is_dataclass(hint) or issubclass(hint, BaseModel)):
        return document(hint)
    origin, parts = get_origin(hint), get_args(hint)
    if not parts or origin in {Annotated, Literal}:
        return hint
    inner = tuple(json_type(part) for part in parts)
    return reduce(or_, inner) if origin in {Union, UnionType} else origin[inner]


def properties_of(of: type) -> dict[str, property]:
    """The properties of a type and its bases, by name."""
    return {
        name: value
        for each in reversed(of.__mro__)
        for name, value in vars(each).items()
        if isinstance(value, property)
    }


def descriptions_of(of: type) -> dict[str, str]:
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


def _without_titles(node: Any) -> Any:
    """A schema without the titles that pydantic derives from names. A property may be named `title`."""
    if isinstance(node, list):
        return [_without_titles(each) for each in node]
    if not isinstance(node, dict):
        return node
    return {key: _without_titles(value) for key, value in node.items() if key != "title" or isinstance(value, dict)}
