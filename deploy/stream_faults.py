"""What of several streams one stack does not support, and the names of their tables."""

from compactor.core.errors import SettingsError
from compactor.core.layout import is_within
from compactor.settings.settings import Settings

MAX_ROLE_NAME = 64
"""The longest name of a role [IAM user guide, IAM and AWS STS quotas]."""


def stream_faults(settings: Settings) -> list[str]:
    """What of the streams this stack does not support."""
    faults = []
    databases = {each.schema.table.partition(".")[0] for each in settings.streams}
    if settings.streams and not settings.sharing:
        faults.append('streams -> expected at least one with job = "shared"')
    if len(databases) > 1 or "" in databases:
        faults.append("streams: schema.table -> expected a table for each stream, all of one database")
    tables = [name for each in settings.streams for name in tables_of(each)]
    faults += [f"streams: table {name} -> expected once" for name in sorted({*tables}) if tables.count(name) > 1]
    faults += [
        f"streams.{each.name}.paths.output: {each.paths.output} -> expected a place within {settings.paths.output}"
        for each in settings.streams
        if not is_within(each.paths.output, settings.paths.output)
    ]
    roles = {each.name: role_of(settings, each) for each in settings.streams if has_own_job(each)}
    faults += [
        f"streams.{name}.name: its job's role {role} has {len(role)} characters -> expected at most {MAX_ROLE_NAME}"
        for name, role in roles.items()
        if len(role) > MAX_ROLE_NAME
    ]
    return faults


def database_of(settings: Settings) -> str:
    """The database that the tables of all streams are in.

    Raises:
        SettingsError: The streams are not as this stack supports them.
    """
    if faults := stream_faults(settings):
        raise SettingsError(faults)
    return settings.streams[0].schema.table.partition(".")[0]


def has_own_job(stream: Settings) -> bool:
    """Whether a stream has a job, and so a role, for itself."""
    return stream.member is not None and stream.member.stream.job == "own"


def role_of(settings: Settings, stream: Settings) -> str:
    """The name of the role of a stream's own job; the shared job's is without the stream."""
    return f"{settings.control.job_name}-job-{stream.name}"


def tables_of(stream: Settings) -> tuple[str, str]:
    """The names of the tables of the rows and of the rejects."""
    table = stream.schema.table.partition(".")[2]
    return table, f"{table}_rejects"
