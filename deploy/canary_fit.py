"""Checks that the job of a canary finds its places in the stack as it is deployed."""

from compactor.core.errors import SettingsError
from compactor.settings.settings import Settings
from deploy.canary import canary_of
from deploy.checkout import Checkout
from deploy.resolved import Document
from deploy.stack import Deployed
from deploy.stack_parameters import settings_parameters
from deploy.streams import logical_id

LATER = (
    *("SlaSeconds", "HalfSlaSeconds", "LogLateSeconds", "JobIsAlwaysUp", "MaintenanceWindow"),
    "OutputFolder",
)
"""Parameters of the settings by which no job finds a place. The canary's job may differ in them from the stack."""

_BUCKET = "ArtefactBucketName"  # where the stack's other jobs have their artefacts, and the template goes


def check_fit(checkout: Checkout, found: Deployed, stream: Settings) -> None:
    """Check that the job of the canary finds its places, and that it is the only one.

    Raises:
        SettingsError: With every difference.
    """
    bucket = {_BUCKET: checkout.parameters[_BUCKET]}
    given = settings_parameters(checkout.settings) | bucket
    faults = [
        f"{name}: {value} -> expected {found.parameters[name]}, as deployed: a canary changes only its job"
        for name, value in given.items()
        if name not in LATER and found.parameters.get(name, value) != value
    ]
    canary = canary_of(found.template)
    if canary and canary.stream != stream.name:
        other = f"{canary.stream} already has release {canary.release}"
        faults.append(
            f"streams.{stream.name}.canary: {other} -> expected one canary: run CANARY=back first, or deploy to all"
        )
    for kind in ("EventsTable", "RejectsTable"):
        name = logical_id(kind, stream)
        here, there = (_table(each.template, name) for each in (checkout, found))
        if there and here != there:
            faults.append(f"streams.{stream.name}: table {here} -> expected {there}, as deployed")
    if faults:
        raise SettingsError(faults)


def _table(template: Document, name: str) -> str:
    found = template["Resources"].get(name)
    if not found:
        return ""
    table = found["Properties"]["TableInput"]
    place = table["Parameters"]["storage.location.template"]
    return f"{table['Name']} at {place['Fn::Sub'] if isinstance(place, dict) else place}"
