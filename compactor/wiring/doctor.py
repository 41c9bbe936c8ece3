"""Builds the doctor: the checks of this machine, and of the resources in the settings."""

import os
import secrets
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache, partial

from compactor.adapters import this_machine
from compactor.adapters.local.machine import SystemClock
from compactor.adapters.local.native.module import why_not_installed
from compactor.adapters.logs import kafka_of, kinesis_of
from compactor.adapters.stores import RoutedStore, StoreSpec
from compactor.core.errors import SettingsError
from compactor.core.extras import is_installed
from compactor.core.layout import is_s3
from compactor.core.ports import Clock
from compactor.ops.doctor import findings, machine_checks
from compactor.ops.doctor.checkup import Environment, checks_of, uses_s3
from compactor.ops.doctor.findings import Account, Check, Finding, run_checks
from compactor.ops.doctor.java import find_java
from compactor.schema.catalog import catalog_columns
from compactor.settings.sections import Builder, Convert, Stream
from compactor.settings.settings import Settings
from compactor.wiring import operating
from compactor.wiring.app import App
from compactor.wiring.engine_choice import engine_choice, source_choice
from compactor.wiring.opening import grok_reader

ANSWER_SECONDS = 3.0
"""The longest wait for one response, whatever the job's timeout."""

ATTEMPTS = 2

JAVA_SECONDS = 10.0

LAST_START_SECONDS = 22.0
"""No check starts later. The longest one needs two responses, so the doctor ends after about half a minute."""

STREAM_SECONDS = 5.0
"""The additional time for each of several streams."""


def examine(
    settings: Settings | None,
    config: str,
    *,
    is_job_here: bool = True,
    is_folder: bool = False,
    clock: Clock | None = None,
) -> Iterator[Finding]:
    """Run all checks, and yield each finding as it is made.

    Args:
        settings: Without them only this machine is checked, for `compact`.
        config: The place of the settings.
        is_job_here: Whether to check this machine.
        is_folder: Whether these are the settings of a folder written by `compact`.
        clock: The clock, for tests.
    """
    checks = _machine_checks(settings, os.environ, is_folder=is_folder) if is_job_here else []
    if settings is not None:
        checks += checks_of(_environment(settings, clock or SystemClock()), settings, config)
    streams = len(settings.streams) if settings else 0
    end = time.monotonic() + LAST_START_SECONDS + streams * STREAM_SECONDS
    return run_checks(checks, lambda: time.monotonic() < end)


def _machine_checks(settings: Settings | None, env: Mapping[str, str], *, is_folder: bool) -> list[Check]:
    """The checks of this machine; without settings, with their defaults and for `compact`."""
    parts: tuple[Settings | None, ...] = (settings.streams or (settings,)) if settings else (None,)
    engines = {each.convert.engine if each else Convert().engine for each in parts}
    engine = "native" if "native" in engines else next(iter(sorted(engines)))
    is_needed = any(_needs_spark(each, is_folder=is_folder) for each in parts)
    checks = [
        Check("java", lambda: machine_checks.java(find_java(env, JAVA_SECONDS), is_needed=is_needed)),
        Check("spark", lambda: machine_checks.spark(this_machine.find_spark(), is_needed=is_needed)),
    ]
    if is_needed and (settings is None or uses_s3(settings)):
        checks.append(Check("s3a", lambda: machine_checks.s3a(this_machine.find_spark()), needs=("spark",)))
    checks.append(Check("native", lambda: machine_checks.native(engine, why_not=why_not_installed())))
    checks += [
        Check("pattern", partial(_pattern, each), stream=each.name) for each in parts if each is not None and each.grok
    ]
    if settings is None:
        checks.append(Check("aws", lambda: machine_checks.aws(is_installed=is_installed("aws"))))
    return [*checks, Check("disk", lambda: _disks(settings, env))]


def _pattern(settings: Settings) -> Finding:
    """Whether the pattern of a text stream can be compiled."""
    try:
        reader = grok_reader(settings)
    except SettingsError as exc:
        return findings.fault("; ".join(exc.faults), "correct input.grok; docs/sources.md explains patterns")
    return findings.ok(f"input.grok: {', '.join(reader.types)}" if reader else "none")


def _needs_spark(settings: Settings | None, *, is_folder: bool) -> bool:
    """Whether Spark is indispensable: `compact` needs it only for its engine, a job also for its stream."""
    if engine_choice(settings.convert if settings else Convert()).name != "native":
        return True
    return settings is not None and not is_folder and source_choice(settings).name == "spark"


def _disks(settings: Settings | None, env: Mapping[str, str]) -> list[Finding]:
    stream, builder = (settings.stream, settings.builder) if settings else (Stream(), Builder())
    conf = settings.spark.conf.get("spark.local.dir", "") if settings else ""
    scratch = tuple(filter(None, conf.split(","))) or this_machine.scratch_folders(env)
    folders = [(path.strip(), "scratch of Spark and Python") for path in scratch]
    if settings and not is_s3(settings.paths.state):
        folders += [(settings.paths.state, "paths.state"), (settings.paths.output, "paths.output")]
        folders += [(each.paths.output, f"streams.{each.name}.paths.output") for each in settings.streams]
    needed_bytes = stream.manifests_in_flight * builder.target_manifest_bytes
    return machine_checks.disks(folders, needed_bytes, this_machine.disk_of)


def _environment(settings: Settings, clock: Clock) -> Environment:
    aws = settings.aws
    spec = replace(StoreSpec.of(aws), timeout_seconds=min(aws.timeout_seconds, ANSWER_SECONDS), attempts=ATTEMPTS)

    @cache
    def account() -> Account:
        from compactor.adapters.aws.account import AwsAccount  # noqa: PLC0415 - boto3 is slow to load

        return AwsAccount(spec.region, spec.client)

    store = RoutedStore(spec)

    def app(of: Settings) -> App:
        return App(of, store=store)

    def columns(of: Settings) -> dict[str, str]:
        return catalog_columns(app(of).registry.latest(), of.metadata_columns)

    def ask_claims(of: Settings) -> object:
        is_here = not of.builder.claims and not is_s3(of.paths.state)
        return app(of).table_of_claims.get_many(()) if is_here else None

    return Environment(
        account=account,
        ask_claims=ask_claims,
        kafka=lambda of: kafka_of(of.kafka.clusters, request_seconds=ANSWER_SECONDS),
        store=store,
        clock=clock,
        columns=columns,
        kinesis=lambda of: kinesis_of(of.kinesis.sources, spec),
        listed=lambda of: operating.listed_table(app(of)),
        trial_id=secrets.token_hex(4),
    )
