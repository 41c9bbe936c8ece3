"""What all functions of AWS Lambda share: settings and clients that outlive one call, and parts that do not."""

import os
from functools import cache

from compactor.errors import SettingsError
from compactor.logs import configure_logs
from compactor.parts import Parts
from compactor.remote_settings import settings_at

FLUSH_SECONDS = 10.0
"""How long a function waits for its measurements to be sent: it is frozen once it has returned."""


def function_parts() -> Parts:
    """The parts for one call. Settings are read, and clients made, in the first call of a process.

    Raises:
        SettingsError: `COMPACTOR_CONFIG` is not set, or with every fault of the settings.
    """
    lasting = _lasting_parts()
    return Parts(lasting.settings, store=lasting.store, claims=lasting.claims, metrics=lasting.metrics)


@cache
def _lasting_parts() -> Parts:
    configure_logs(as_json=True)
    return Parts(settings_at(settings_place(), os.environ))


def settings_place() -> str:
    """Where a function's settings are.

    Raises:
        SettingsError: `COMPACTOR_CONFIG` is not set.
    """
    place = os.environ.get("COMPACTOR_CONFIG", "")
    if not place:
        raise SettingsError(["COMPACTOR_CONFIG: not set -> expected the place of the settings, as s3://bucket/key"])
    return place
