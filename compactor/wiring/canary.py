"""Puts the check of a deployment together."""

import time
from typing import cast

from compactor.core.errors import SettingsError
from compactor.core.layout import is_s3
from compactor.core.logs.names import is_log
from compactor.ops.canary.checker import CanaryChecker
from compactor.ops.canary.progress import Progress, Stage
from compactor.wiring.operator_components import OperatorComponents


def canary_checker(components: OperatorComponents) -> CanaryChecker:
    """Make what sends a canary through the deployment of some settings.

    Raises:
        SettingsError: The settings are not those of a deployment.
    """
    settings = components.settings
    if not is_s3(settings.paths.state):
        raise SettingsError([f'paths.state: "{settings.paths.state}" -> expected a place on S3, as a deployment has'])

    files = next((each for each in settings.input.allowed_prefixes if not is_log(each)), None)
    if files is None:
        raise SettingsError(["input.allowed_prefixes: topics only -> expected a place for the file of the canary"])

    def look(uri: str) -> Progress:
        found = components.tracer.trace(uri, days=1)
        return Progress(cast("Stage", str(found.state)), found.manifest_id, found.date, found.message)

    return CanaryChecker(
        state=components.state,
        input_place=files,
        date=settings.input.earliest_date,
        max_key_characters=settings.schema.max_key_characters,
        has_rescued=settings.input.discovery == "full",
        look=look,
        pause=time.sleep,
        seconds=time.monotonic,
    )
