"""Converts one folder to another."""

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any, Literal, get_args

from compactor.api.arguments import Place, texts
from compactor.api.compact_result import CompactResult
from compactor.api.folder_run import FolderRun
from compactor.api.progress import Display, Progress, ProgressDisplay, StopRequests
from compactor.core.errors import SettingsError
from compactor.settings.compact_paths import Options, parse_compact_paths, parse_exclusions
from compactor.sources.folders.planning import OnReplaced
from compactor.wiring.folder import folder_settings


def compact(
    src: Place | Sequence[Place],
    dst: Place,
    *,
    format: Literal["ndjson", "json", "grok"] | None = None,  # noqa: A002 - as the option of the command
    grok: str | None = None,
    records: str | None = None,
    keep: Sequence[str] = (),
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
    """Turn the NDJSON in `src` into Parquet in `dst`: plan, compact, verify; as `compactor compact` does.

    A second call compacts only new files, and resumes an interrupted call. An option that is None keeps its value from
    earlier calls for this destination, or from `COMPACTOR_` variables and the defaults.

    Args:
        src: Folders, files, patterns such as `logs/**/*.gz`, or `s3://bucket/prefix`; one, or a sequence.
        dst: The folder or `s3://bucket/prefix` of the rows.
        format: `json` also reads arrays and multi-line documents; `grok` parses text lines with a pattern.
        grok: The pattern of text lines, such as `%{COMBINEDAPACHELOG}`; sets the format `grok`.
        records: The path to the arrays in JSON documents whose elements become rows, such as `Records[]`; `auto`
            recognises CloudTrail, CloudWatch Logs and OTLP logs. Sets the format `json`.
        keep: With `records`: keys of the objects around the arrays that become columns.
        types: `infer` infers column types from the input, once for this destination. Not with `schema`.
        schema: A schema file (TOML) with names and types; a copy is kept.
        names: Column names: `safe` for Athena and Glue, or `exact`, as the keys. Once for this destination.
        hive_keys: Whether folders such as `country=DE` become columns.
        exclude: Files to skip, in this call and later ones: name patterns such as `*.csv`, or files, folders and
            patterns as for `src`.
        hidden: Whether to include files and folders whose names begin with `.` or `_`.
        on_replaced: What to do if a file with rows was replaced, not just appended to: `quarantine` the new version,
            `rebuild` its rows, or `append` all its lines.
        deep: Whether to compare every value at the end, not only counts; reads all input again.
        dry_run: Whether to write nothing, and only report the plan.
        engine: The engine to use; `auto` is the native one if it is installed.
        state: The place of the state; by default `dst` with the suffix `.compactor`.
        claims: A DynamoDB table for claims; optional, for S3.
        region: An AWS region.
        endpoint_url: A server to use instead of AWS.
        progress: Called at each step and up to ten times a second, never from two threads at once. If it raises, the
            work stops after the manifests in flight, and the error is raised here.

    Returns:
        The result. Quarantined files and manifests that wait for an operator are in the result, not
        errors: see `complete`.

    Raises:
        SettingsError: An argument is wrong, there is nothing to compact, or a place is unusable. Messages use the
            option names of the command line.
        ExtraMissing: An extra such as `[aws]` is not installed.
        AccessError: Something may not be read or written, or there are no AWS credentials.
        StoreUnavailable: The store fails; the same call continues.
        TryAgainError: Manifests failed temporarily; the same call continues.
        EngineLost: Spark died; the same call continues.
        KeyboardInterrupt: Ctrl-C. Manifests in flight are finished; the same call continues.
    """
    options = Options(
        engine=engine,
        format=format,
        grok=grok,
        records=records,
        keep=",".join(keep) or None,
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
    return run.run()


def folder_run(
    sources: Sequence[str],
    destination: str,
    state: str | None,
    options: Options,
    display: Display,
    stopping: Callable[[], AbstractContextManager[StopRequests]],
    **choices: Any,
) -> FolderRun:
    """Make a call from its caller's arguments.

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
