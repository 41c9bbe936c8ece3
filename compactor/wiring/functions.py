"""What all functions of AWS Lambda share: settings that are read in each call, and clients that outlive it."""

import os
from typing import TypeVar

from compactor.core.errors import SettingsError
from compactor.telemetry.logs import configure_logs
from compactor.wiring.components import Components
from compactor.wiring.remote_settings import settings_at

P = TypeVar("P", bound=Components)

_KEPT: dict[type[Components], Components] = {}


def function_components() -> Components:
    """The parts for one call, with the store, claims and metrics of the call before."""
    lasting = lasting_components(Components)
    return Components(lasting.settings, store=lasting.store, claims=lasting.claims, metrics=lasting.metrics)


def lasting_components(kind: type[P]) -> P:
    """The parts of the call before, for the sake of their clients, unless the settings have changed since.

    Settings are read each time, so that a change of them takes effect at the next call.

    Args:
        kind: The class of the parts.

    Raises:
        SettingsError: `COMPACTOR_CONFIG` is not set, or with every fault of the settings.
    """
    kept = _KEPT.get(kind)
    if kept is None:
        configure_logs(as_json=True)
    place = os.environ.get("COMPACTOR_CONFIG", "")
    if not place:
        raise SettingsError(["COMPACTOR_CONFIG: not set -> expected the place of the settings, as s3://bucket/key"])
    settings = settings_at(place, os.environ)
    if not isinstance(kept, kind) or kept.settings != settings:
        kept = _KEPT[kind] = kind(settings)
    return kept


def forget_components() -> None:
    """Begin anew, as a fresh process would."""
    _KEPT.clear()
