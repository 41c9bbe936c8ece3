"""Puts the doctor together: looks at this machine, and at what the settings name."""

import os
import secrets
import time
from collections.abc import Iterator
from functools import cache

from compactor.adapters.local.clock import SystemClock
from compactor.adapters.local.this_machine import ThisMachine
from compactor.adapters.stores import RoutedStore, StoreSpec
from compactor.core.ports import Clock
from compactor.ops.doctor.checkup import Environment, machine_checks_of, places_checks_of
from compactor.ops.doctor.findings import Finding
from compactor.ops.doctor.ports import Account, Machine
from compactor.ops.doctor.runner import examine
from compactor.settings.settings import Settings

ANSWER_SECONDS = 3.0
"""How long to wait for one answer at most, whatever the job may wait."""

ATTEMPTS = 2

LAST_LOOK_SECONDS = 22.0
"""No look begins later. The longest one takes two answers, so that all ends after about half a minute."""


def look_around(
    settings: Settings | None,
    config: str,
    *,
    is_job_here: bool = True,
    machine: Machine | None = None,
    clock: Clock | None = None,
) -> Iterator[Finding]:
    """Look at everything, and tell each finding as it is made.

    Args:
        settings: What is to work; None to look at the machine alone.
        config: Where the settings are from.
        is_job_here: Whether the job is to run on this machine.
        machine: The machine; this one if none is given.
        clock: Its time; that of the system if none is given.
    """
    machine = machine or ThisMachine(os.environ)
    checks = machine_checks_of(machine, settings) if is_job_here else []
    if settings is not None:
        around = _surroundings(settings, machine, clock or SystemClock())
        checks += places_checks_of(around, settings, config)
    end = time.monotonic() + LAST_LOOK_SECONDS
    return examine(checks, lambda: time.monotonic() < end)


def _surroundings(settings: Settings, machine: Machine, clock: Clock) -> Environment:
    aws = settings.aws
    spec = StoreSpec(
        region=aws.region or None,
        endpoint_url=aws.endpoint_url or None,
        timeout_seconds=min(aws.timeout_seconds, ANSWER_SECONDS),
        attempts=ATTEMPTS,
    )

    @cache
    def account() -> Account:
        from compactor.adapters.aws.account import AwsAccount  # noqa: PLC0415 - boto3 is slow to load

        return AwsAccount(spec.region, spec.endpoint_url, timeout_seconds=spec.timeout_seconds, attempts=ATTEMPTS)

    return Environment(machine, account, RoutedStore(spec), clock, secrets.token_hex(4))
