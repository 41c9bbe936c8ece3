"""Turns one folder into another."""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, Literal, Self, get_args

from compactor.api.arguments import Place, texts
from compactor.api.compact_call.closing import Closing
from compactor.api.compact_call.problems import problems_of
from compactor.api.compact_call.run import FolderRun
from compactor.api.display import Display, StopRequests
from compactor.api.progress import Progress, ProgressDisplay
from compactor.api.verify import VerifyResult
from compactor.core.errors import SettingsError
from compactor.ledger.accounts.account import QuarantinedFile
from compactor.manifests.folders.planning import OnReplaced
from compactor.manifests.plan import LeftOut
from compactor.settings.compact_paths import Options, parse_compact_paths, parse_exclusions
from compactor.wiring.folder import folder_settings


@dataclass(frozen=True, slots=True)
class CompactResult:
    """What a call of `compact` did. Figures are of this call; those of `verified` are of all calls for the same DST.

    Attributes:
        complete: Whether all is done and verified, and no person has to act: each line of each file that was taken is a
            row, a reject or blank. `compactor compact` would end with exit code 0. False in a dry run.
        exit_code: How `compactor compact` would end: 0; 1 if work is left, which the same call continues; 3 if a person
            has to act.
        is_unfinished: Whether the same call would continue the work.
        needs_operator: Whether something was quarantined or not taken, counts do not add up, under half of the lines
            are rows, or rows look like envelopes.
        output: DST, which holds rows only.
        rejects_folder: The folder of the rejects.
        settings_file: The settings that all other commands and functions find by DST.
        schema_file: The schema file with the types; None if all columns are strings.
        files: Files that this call planned, or would plan in a dry run.
        input_bytes: Their stored size in bytes.
        rows: Rows that became visible.
        rejected_lines: Lines that were rejected.
        outputs: The Parquet files that became visible. Manifests of `rebuilt` have others.
        output_bytes: The size of `outputs` in bytes.
        rebuilt: The ids of manifests whose rows were made again, because files were replaced.
        planned_before: Files that were taken by an earlier call.
        skipped: Files that are no input, by reason: hidden, empty, markers of jobs.
        left_out: Files and folders that were not taken and that a person has to know of.
        quarantined_files: Files of any call that could not be read, and are not settled: not redriven, and no
            later version was compacted.
        held: Files that another planner has claimed; a later call takes them.
        problems: What is not done, and what a person has to act on, in one line each; empty if `exit_code` is 0.
        verified: The verification of everything in DST; None in a dry run and while unfinished.
        engine: The engine that wrote rows, `native` or `spark`; None if there was nothing to do.
        engine_reason: Why it was chosen; None as above.
        dry_run: Whether nothing was written.
        seconds: The duration of the call.
    """

    complete: bool
    exit_code: int
    is_unfinished: bool
    needs_operator: bool
    output: str
    rejects_folder: str
    settings_file: str
    schema_file: str | None
    files: int
    input_bytes: int
    rows: int
    rejected_lines: int
    outputs: tuple[str, ...]
    output_bytes: int
    rebuilt: tuple[str, ...]
    planned_before: int
    skipped: Mapping[str, int]
    left_out: tuple[LeftOut, ...]
    quarantined_files: tuple[QuarantinedFile, ...]
    held: int
    problems: tuple[str, ...]
    verified: VerifyResult | None
    engine: str | None
    engine_reason: str | None
    dry_run: bool
    seconds: float

    @classmethod
    def of(cls, closing: Closing) -> Self:
        """The result of a call that has ended."""
        plan, run, report = closing.plan, closing.run, closing.verification
        return cls(
            complete=not closing.exit_code and not closing.dry_run,
            exit_code=int(closing.exit_code),
            is_unfinished=closing.is_unfinished,
            needs_operator=closing.needs_operator,
            output=closing.paths.output,
            rejects_folder=closing.layout.rejects_folder,
            settings_file=closing.paths.settings_file,
            schema_file=closing.schema_file,
            files=closing.new_files,
            input_bytes=closing.new_bytes,
            rows=run.records,
            rejected_lines=run.rejected_lines,
            outputs=tuple(closing.outputs),
            output_bytes=run.output_bytes,
            rebuilt=tuple(each.manifest_id for each in closing.rebuilt),
            planned_before=plan.planned_before,
            skipped=dict(plan.skipped),
            left_out=tuple(plan.left_out),
            quarantined_files=tuple(report.open_files if report is not None else ()),
            held=plan.held,
            problems=tuple(problems_of(closing)),
            verified=None if report is None else VerifyResult.of(report),
            engine=closing.engine.name if closing.engine else None,
            engine_reason=closing.engine.reason if closing.engine else None,
            dry_run=closing.dry_run,
            seconds=closing.seconds,
        )


def compact(
    src: Place | Sequence[Place],
    dst: Place,
    *,
    format: Literal["ndjson", "json", "grok"] | None = None,  # noqa: A002 - as the option of the command
    grok: str | None = None,
    types: Literal["infer"] | None = None,
    schema: Place | None = None,
    names: Literal["safe", "exact"] | None = None,
    hive_keys: bool | None = None,
    exclude: Place | Sequence[Place] = (),
    hidden: bool = False,
    on_replaced: OnReplaced = "quarantine",
    deep: bool = False,
    dry_run: bool = False,
    engine: Literal["auto", "native", "spark"] | None = None,
    state: Place | None = None,
    claims: str | None = None,
    region: str | None = None,
    endpoint_url: str | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> CompactResult:
    """Turn the NDJSON below `src` into Parquet below `dst`: plan, compact, verify; as `compactor compact` does.

    A second call takes only new files, and continues where the first was interrupted. None leaves an option as earlier
    calls for this destination have it, or to `COMPACTOR_` variables and the defaults.

    Args:
        src: Folders, files, patterns such as `logs/**/*.gz`, or `s3://bucket/prefix`; one, or a sequence.
        dst: The folder or `s3://bucket/prefix` of the rows.
        format: `json` reads JSON arrays and documents of several lines, too; `grok` reads text by a pattern.
        grok: The pattern of lines of text, such as `%{COMBINEDAPACHELOG}`; makes the format `grok`.
        types: `infer` chooses types from the input, once for this destination. Not with `schema`.
        schema: A schema file (TOML) with names and types, of which a copy is kept.
        names: Names of columns: `safe` for Athena and Glue, or `exact`, as the keys. Once for this destination.
        hive_keys: Whether folders such as `country=DE` become columns.
        exclude: Files to pass over, in this call and later ones: patterns of names such as `*.csv`, or files, folders
            and patterns as for `src`.
        hidden: Whether to take files and folders whose names begin with `.` or `_`.
        on_replaced: What to do if a file with rows was replaced, not just appended to: `quarantine` the new version,
            `rebuild` its rows, or `append` all its lines.
        deep: Whether to compare every value at the end, not only counts; reads all input again.
        dry_run: Whether to write nothing, and only tell what would be taken.
        engine: The engine to use; `auto` is the native one if it is installed.
        state: The place of the state; by default `dst` with `.compactor` behind it.
        claims: A DynamoDB table for claims; optional, for S3.
        region: An AWS region.
        endpoint_url: A server in place of AWS.
        progress: Called with each step and up to ten times a second, never from two threads at once. If it raises, the
            work stops after the manifests in flight, and the error is raised here.

    Returns:
        What was done. A file that was quarantined, or a manifest that waits for an operator, is in the result and is no
        error: see `complete`.

    Raises:
        SettingsError: An argument is wrong, there is nothing to compact, or a place cannot be used. Messages name
            options as the command line does.
        ExtraMissing: An extra such as `[aws]` is not installed.
        AccessError: Something may not be read or written, or there are no AWS credentials.
        StoreUnavailable: The store fails; the same call continues.
        TryAgainError: Manifests failed in passing trouble; the same call continues.
        EngineLost: Spark died; the same call continues.
        KeyboardInterrupt: Ctrl-C. Manifests in flight are finished; the same call continues.
    """
    options = Options(
        engine=engine,
        format=format,
        grok=grok,
        schema=None if schema is None else os.fspath(schema),
        names=names,
        claims=claims,
        region=region,
        endpoint_url=endpoint_url,
        types=types,
        hive_keys=hive_keys,
        exclude=tuple(texts(exclude)),
    )
    display = ProgressDisplay(progress)
    run = folder_run(
        texts(src),
        os.fspath(dst),
        None if state is None else os.fspath(state),
        options,
        display,
        lambda: nullcontext(display),
        deep=deep,
        dry_run=dry_run,
        on_replaced=on_replaced,
        with_hidden=hidden,
    )
    return CompactResult.of(run.run())


def folder_run(
    sources: Sequence[str],
    destination: str,
    state: str | None,
    options: Options,
    display: Display,
    stopping: Callable[[], AbstractContextManager[StopRequests]],
    **choices: Any,
) -> FolderRun:
    """Make a call from what its caller wrote.

    Args:
        sources: Each SRC.
        destination: DST.
        state: The place of the state; None for that beside DST.
        options: Those that are settings.
        display: Shows the call.
        stopping: Opens what may stop its work.
        choices: Further fields of `FolderRun`.

    Raises:
        SettingsError: With every fault of the places, or of the settings.
        AccessError: The settings of DST may not be read.
    """
    if options.schema and options.types:
        raise SettingsError(["give --schema or --types, not both"])
    if options.types not in {None, "infer"}:
        raise SettingsError([f"--types: {options.types!r} -> expected 'infer'"])
    if (on_replaced := choices["on_replaced"]) not in get_args(OnReplaced):
        expected = ", ".join(map(repr, get_args(OnReplaced)))
        raise SettingsError([f"--on-replaced: {on_replaced!r} -> expected one of {expected}"])
    options = replace(options, exclude=parse_exclusions(options.exclude))
    folder = folder_settings(parse_compact_paths(sources, destination, state), options, os.environ)
    return FolderRun(folder, display, stopping, **choices)
