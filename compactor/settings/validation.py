"""Reads sections of settings from a document and environment variables, and describes each fault in one line."""

import json
import re
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from compactor.core.text.formatting import did_you_mean, shown
from compactor.core.text.safe_text import visible

ENV_PREFIX = "COMPACTOR_"
ENV_SEPARATOR = "__"

_MAY_BE_SECRET = re.compile(r"(kafka|kinesis|spark|emr)(\.(clusters|sources|conf|spark_conf)([.\[].*)?)?")
"""The tables of properties for clients and Spark, which may include passwords, and their sections."""
_USERINFO = re.compile(r"([a-z][a-z0-9+.-]*:(?://)?).*@", re.IGNORECASE | re.DOTALL)
_SURROGATE = re.compile(r"[\ud800-\udfff]")  # Python's form of environment bytes that are not UTF-8
_EXPECTED = {
    "bool_type": "true or false",
    "int_type": "a whole number",
    "float_type": "a number",
    "string_type": "a string",
    "tuple_type": "a list",
    "dict_type": "a table",
    "greater_than": "more than {gt}",
    "greater_than_equal": "at least {ge}",
    "less_than_equal": "at most {le}",
    "finite_number": "a finite number",
    "literal_error": "{expected}",
    "value_error": "{error}",
}
"""Expected values by pydantic's error type; other types keep pydantic's message."""

Sections = Mapping[str, type[BaseModel]]
SectionT = TypeVar("SectionT", bound=BaseModel)


@dataclass(frozen=True)
class Expected:
    """Annotates a field with its expected value, worded to follow `expected` in a message."""

    words: str


@dataclass(slots=True)
class Source:
    """Values as set, before validation."""

    values: dict[str, dict[str, object]] = field(default_factory=dict)  # section → key → value
    origins: dict[str, str] = field(default_factory=dict)  # `section.key` → environment variable that set it
    faults: list[str] = field(default_factory=list)  # one line per fault found so far

    def fault(self, key: str, value: object, expected: str) -> None:
        """Record an invalid value, which is left out if it may be a secret."""
        variable = self.origins.get(key.partition("[")[0])
        origin = f" (from {variable})" if variable else ""
        if isinstance(value, str) and key.endswith(("uri", "url")):
            value = _USERINFO.sub(r"\1***@", value)
        text = "(value not shown)" if _MAY_BE_SECRET.fullmatch(key) else shown(value)
        self.faults.append(f"{key}: {text}{origin} -> expected {expected}")


def read_document(document: Mapping[str, object], sections: Sections) -> Source:
    """Read sections and keys from a document. Unknown ones are recorded as faults and skipped."""
    source = Source()
    for name, table in document.items():
        if name not in sections:
            source.faults.append(f"{_name(name)}: unknown section -> expected {_one_of(name, sections)}")
        elif not isinstance(table, dict):
            source.fault(name, table, "a table")
        else:
            known = sections[name].model_fields
            source.values[name] = {key: value for key, value in table.items() if key in known}
            source.faults += [
                f"{name}.{_name(key)}: unknown key -> expected {_one_of(key, known)}"
                for key in table
                if key not in known
            ]
    return source


def read_environment(env: Mapping[str, str], sections: Sections, source: Source) -> None:
    """Apply the `COMPACTOR_<SECTION>__<KEY>` variables, in letters of either case, on top of the document."""
    for variable in sorted(env):
        name, separator, key = variable.removeprefix(ENV_PREFIX).lower().partition(ENV_SEPARATOR)
        if not variable.startswith(ENV_PREFIX) or not separator:
            continue
        shown_name = _name(variable)
        if name not in sections:
            source.faults.append(f"{shown_name}: unknown section {_name(name)} -> expected {_one_of(name, sections)}")
            continue
        known = sections[name].model_fields
        if key not in known:
            source.faults.append(f"{shown_name}: unknown key {name}.{_name(key)} -> expected {_one_of(key, known)}")
            continue
        if other := source.origins.get(f"{name}.{key}"):
            source.faults.append(f"{shown_name}: sets {name}.{key}, as does {_name(other)} -> expected only one")
            continue
        source.origins[f"{name}.{key}"] = variable
        if _SURROGATE.search(env[variable]):
            source.fault(f"{name}.{key}", env[variable], "UTF-8 text")
        else:
            source.values.setdefault(name, {})[key] = _from_text(env[variable], known[key].annotation)


def validate(name: str, model: type[SectionT], source: Source) -> SectionT | None:
    """Validate one section; record its faults and return None if it has any."""
    try:
        return model.model_validate(source.values.get(name, {}))
    except ValidationError as exc:
        for error in exc.errors(include_url=False):
            _note(name, model, error, source)
        return None


def expected_words(field: FieldInfo) -> str:
    """The expected value of a field; its description if the type has none."""
    said = (each.words for each in field.metadata if isinstance(each, Expected))
    return next(said, field.description or "a value")


def _note(name: str, model: type[BaseModel], error: ErrorDetails, source: Source) -> None:
    key, *inner = [part for part in error["loc"] if part != "[key]"]
    path = f"{name}.{key}" + "".join(f"[{_name(part)}]" for part in inner)
    if error["type"] == "missing":
        source.faults.append(f"{path}: not set -> expected {expected_words(model.model_fields[str(key)])}")
    else:
        template = _EXPECTED.get(error["type"])
        words = template.format(**error.get("ctx", {})) if template else error["msg"]
        source.fault(path, error["input"], words)


def _name(name: str | int) -> str:
    """A printable short name unchanged; any other name quoted."""
    text = str(name)
    return text if visible(text) == text and shown(text) == f'"{text}"' else shown(text)


def _one_of(word: str, known: Iterable[str]) -> str:
    names = sorted(known)
    return f"one of {', '.join(names)}{did_you_mean(word, names)}"


def _from_text(text: str, annotation: Any) -> object:
    """Parse a variable for a field of this type; return the text itself if it does not parse."""
    kind = typing.get_origin(annotation) or annotation
    try:
        if kind in {int, float}:
            return kind(text)
        if kind is dict or (kind is bool and text in {"true", "false"}):
            return json.loads(text)
        if kind is tuple:
            is_json = text.lstrip().startswith("[")
            return json.loads(text) if is_json else [part.strip() for part in text.split(",") if part.strip()]
    except (ValueError, RecursionError):
        pass
    return text
