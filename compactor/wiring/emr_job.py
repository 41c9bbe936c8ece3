"""Finds the job on EMR Serverless that the settings name, whose runs the control plane starts and stops."""

import os
from datetime import datetime
from typing import Any

from compactor.control.snapshot import JobRuns
from compactor.core.errors import SettingsError
from compactor.core.layout import is_s3
from compactor.core.ports import Clock, ObjectStore
from compactor.settings.settings import Settings


def emr_job(settings: Settings, store: ObjectStore, clock: Clock, client: Any) -> JobRuns:
    """The runs of the job, each of which reads the settings of this process.

    Raises:
        SettingsError: `COMPACTOR_CONFIG` names no settings on S3, which a run could read.
    """
    from compactor.adapters.aws.emr_job import EmrJob  # noqa: PLC0415 - boto3 is slow to load

    place = os.environ.get("COMPACTOR_CONFIG", "")
    if not is_s3(place):
        raise SettingsError(
            [f'COMPACTOR_CONFIG: "{place}" -> expected settings on S3, which the runs on EMR Serverless read, too']
        )

    def defined_at() -> datetime | None:
        found = store.stat(place)
        return found.modified_at if found else None

    return EmrJob(
        emr=client,
        name=settings.run_name,
        wanted=settings.emr,
        settings_place=place,
        shard=settings.stream.shard,
        clock=clock,
        defined_at=defined_at,
    )
