"""Shows the state of a file or manifest, or the origin of an output."""

import os
from dataclasses import replace
from pathlib import Path

from compactor.api.arguments import Place, settings_of
from compactor.core.errors import SettingsError
from compactor.core.layout import MANIFEST_ID, canonical
from compactor.core.logs.names import is_log, record_or_gap
from compactor.core.rules.next_steps import Cause, NextStep, giving_up, giving_up_manifest, letter_step, next_step
from compactor.core.text.safe_text import Suggestions
from compactor.ops.trace.trace import TraceResult, TraceState
from compactor.ops.trace.tracer import SEARCHED_DAYS, Tracer
from compactor.settings.places import parse_place
from compactor.settings.settings import Settings
from compactor.wiring import operating
from compactor.wiring.app import App


def trace(dst: Place, file: Place, *, days: int = SEARCHED_DAYS) -> TraceResult:
    """Show the state of a file or manifest, or the origin of an output, as `compactor trace` does.

    Args:
        dst: DST of `compact`, the place of its state, or a settings file.
        file: A path, a URI or a manifest id: of an input file, a manifest, an output file or a rejects file.
        days: How many dates in the ledger to search for a file without a claim: its own date, then the newest.

    Returns:
        The result. A thing in no record has `found=False`; that is not an error.

    Raises:
        SettingsError: There are no settings at `dst`, or `file` is invalid.
        AccessError: Something may not be read.
        StoreUnavailable: The store fails; repeat the call.
    """
    if days < 1:
        raise SettingsError([f"days: {days} -> expected 1 or more"])
    return find_trace(settings_of(dst), os.fspath(file), days)


def find_trace(settings: Settings, thing: str, days: int) -> TraceResult:
    """Trace a thing; a name without `/` may be a manifest's id or a path.

    Raises:
        SettingsError: The name is invalid, or it is a folder.
    """
    found = _found(operating.tracer(App(settings)), thing, days)
    if found.state is TraceState.UNKNOWN and (thing.endswith("/") or Path(thing).is_dir()):
        expected = "a file, an output file, a rejects file or a manifest"
        raise SettingsError([f"{thing} is a folder -> expected {expected}; for all files, use `compactor status`"])
    suggest = settings.suggestions
    steps = _steps(found, suggest)
    own = [command for each in steps for command in each.commands]
    moves = list(dict.fromkeys([*own, *map(suggest.of, found.next_moves)]))
    return replace(found, fixes=[each.fix for each in steps if each.fix], next_moves=moves)


def _steps(found: TraceResult, suggest: Suggestions) -> list[NextStep]:
    """The next actions for quarantined versions, and for a version that replaced another."""
    left = [each for each in found.quarantined if not each.is_settled]
    steps = [next_step(each.cause, suggest, each.manifest_id) for each in left]
    if left and found.kind == "file":
        steps.append(NextStep("", (giving_up(left[-1].cause, suggest, found.uri),)))
    if found.reason and found.needs_operator:
        steps.append(letter_step(found.reason, found.manifest_id, suggest))
    lost = [each.manifest_id for each in found.lost if not each.settled_by][:1]
    if lost:
        steps.append(NextStep("", (suggest.call("rebuild", "--manifest", *lost),)))
    if lost or (found.reason and found.needs_operator):
        steps.append(NextStep("", (giving_up_manifest(found.manifest_id, suggest),)))
    if found.is_replaced and not found.quarantined and suggest.again_with():
        steps.append(next_step(Cause.REPLACED, suggest))
    return list(dict.fromkeys(steps))


def _found(tracer: Tracer, thing: str, days: int) -> TraceResult:
    if "/" in thing or not MANIFEST_ID.fullmatch(thing):
        return tracer.trace(absolute_uri(thing), days=days)
    found = tracer.trace_manifest(thing)
    if found.state is not TraceState.UNKNOWN:
        return found
    as_file = tracer.trace(absolute_uri(thing), days=days)
    if as_file.state is TraceState.UNKNOWN:
        searched = f"for a manifest {found.searched}; for a file {as_file.searched}"
        return replace(as_file, searched=searched)
    return as_file


def absolute_uri(uri: str) -> str:
    """The URI as given; a relative path starts at the current working directory.

    Raises:
        SettingsError: The URI is invalid.
    """
    if is_log(uri):
        try:
            record_or_gap(uri)
        except ValueError as exc:
            raise SettingsError([f"{uri!r} -> expected {exc}"]) from exc
        return uri
    if canonical(uri).startswith(("s3://", "/")):
        return uri
    try:
        return parse_place(uri, any_name=True)
    except ValueError as exc:
        raise SettingsError([f"{uri!r} -> expected s3://bucket/key, file:///path or a path ({exc})"]) from exc
