"""The catalogue of events: every call keeps to it, nothing in it is unused, and what went wrong has a next move."""

import ast
import inspect
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from compactor.cli.entry import compactor as command
from compactor.core import errors
from compactor.core.errors import CompactorError
from compactor.telemetry.log_events import CATALOGUE, COMMON_FIELDS, OF_THE_ERROR
from compactor.wiring import functions

ROOT = Path(__file__).resolve().parents[3]
SOURCES = [ROOT / "glue_entry.py", *(ROOT / "lambdas").glob("*.py"), *(ROOT / "compactor").rglob("*.py")]

KINDS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, CompactorError)]


@cache
def calls() -> list[tuple[str, ast.Call]]:
    """Every call that logs, with where it is."""
    texts = {path: text for path in sorted(SOURCES) if "log_event" in (text := path.read_text())}
    return [
        (f"{path.relative_to(ROOT)}:{node.lineno}", node)
        for path, text in texts.items()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "log_event"
    ]


def faults(call: ast.Call) -> Iterator[str]:
    """What is wrong with a call, by the catalogue."""
    name = call.args[0] if len(call.args) == 1 else None
    if not isinstance(name, ast.Constant) or name.value not in CATALOGUE:
        yield "expected one event of the catalogue, written out"
        return
    given = {keyword.arg for keyword in call.keywords}
    if given != set(CATALOGUE[name.value].fields):
        yield f"{name.value} has the fields {sorted(CATALOGUE[name.value].fields)}, found {given}"
    for keyword in call.keywords:
        # What a library says may quote the data: only `log_event` puts errors into words.
        texts = [node for node in ast.walk(keyword.value) if isinstance(node, ast.JoinedStr)]
        converted = [
            node
            for node in ast.walk(keyword.value)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in {"str", "repr"}
        ]
        if texts or converted:
            yield f"{keyword.arg} is made into text; expected a value or the error itself"


def test_calls_keep_to_the_catalogue() -> None:
    """Each call names an event of the catalogue with its fields, all of them and no others, and hands errors over."""
    assert [f"{where}: {fault}" for where, call in calls() for fault in faults(call)] == []


def test_nothing_in_the_catalogue_is_unused() -> None:
    """Every entry is logged somewhere."""
    logged = {call.args[0].value for _, call in calls() if isinstance(call.args[0], ast.Constant)}
    assert logged == set(CATALOGUE)


@pytest.mark.parametrize(
    "text",
    [
        'log_event("batch.finnished")',
        'log_event("run.asked_to_stop", what=1)',
        'log_event("retention.failed")',
        'log_event("retention.failed", **fields)',
        'log_event("retention.failed", error=str(exc)[:500])',
        'log_event("retention.failed", error=f"{exc}")',
        "log_event(name)",
    ],
)
def test_a_wrong_call_is_found(text: str) -> None:
    """An unknown event, a field too many or too few, and an error made into text are faults."""
    call = ast.parse(text, mode="eval").body
    assert isinstance(call, ast.Call)
    assert list(faults(call))


def test_only_one_module_logs() -> None:
    """Nothing goes around the catalogue."""
    allowed = {
        "compactor/telemetry/logs.py",
        "compactor/demo/local_aws.py",
    }  # the latter quietens the stand-in for AWS
    found = {
        path.relative_to(ROOT).as_posix()
        for path in SOURCES
        if re.search(r"^\s*(import logging|from logging)|LOGGER", path.read_text(), re.MULTILINE)
    }
    assert found == allowed


def test_glue_and_lambda_log_json() -> None:
    """The job's script sets the log up as JSON, and so does what each function begins with."""
    for name in ("glue_entry.py", "compactor/wiring/functions.py"):
        assert "configure_logs(as_json=True)" in (ROOT / name).read_text()
    handlers = [path for path in (ROOT / "lambdas").glob("*.py") if path.stem != "__init__"]
    assert len(handlers) == 3
    for path in handlers:
        [body] = re.findall(r"^from compactor.wiring.functions import (\w+)$", path.read_text(), re.MULTILINE)
        source = inspect.getsource(getattr(functions, body))
        assert "lasting()" in source, path.name


@pytest.mark.parametrize("name", sorted(CATALOGUE))
def test_an_event_says_what_it_means(name: str) -> None:
    """An event has a meaning; fields that do not clash with the log's own; a warning or error has a next move."""
    event = CATALOGUE[name]
    assert re.fullmatch(r"[a-z_]+\.[a-z_]+", name)
    assert event.meaning
    assert all(event.fields.values())
    assert not set(event.fields) & set(COMMON_FIELDS)
    assert bool(event.next_move) == (event.level in {"warning", "error"})


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_each_error_has_a_next_move(kind: type[CompactorError]) -> None:
    """A kind of error says what to do, in one line; those that share a group's have no better one."""
    assert kind.next_move
    assert "\n" not in kind.next_move
    assert "next_move" in vars(kind)


def test_next_moves_name_commands_and_events_that_exist() -> None:
    """What a next action names exists."""
    moves = [*(event.next_move for event in CATALOGUE.values()), *(kind.next_move for kind in KINDS)]
    assert OF_THE_ERROR in moves
    for move in moves:
        for named in re.findall(r"`compactor ([a-z]+)", move):
            assert named in command.commands, move
        for named in re.findall(r"look at ([a-z]+\.[a-z_]+)", move):
            assert named in CATALOGUE, move
