"""The parameters of the stack, from the settings, the artefacts and the parameters file."""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from compactor.core.errors import SettingsError
from compactor.core.layout import folder, is_s3
from compactor.core.logs.names import KAFKA, KINESIS, is_log
from compactor.settings.settings import Settings
from deploy.stream_faults import database_of
from deploy.template_nodes import named, statements_of

OF_ONE_STREAM = ("EventsTableName", "OutputFolder")
"""Parameters that the template of several streams does without."""

LISTS = ("KinesisStreams", "KafkaTopics", "KafkaSecrets", "IcebergDatabase", "IcebergTable", "TableBucketName")
"""Parameters with any number of names, comma-separated."""

_JOB_NAME = re.compile(r"[a-z0-9-]{1,40}")  # names of queues, functions and roles begin with it
_SECRET = "secretsmanager:"  # noqa: S105 - how a reference begins
_WILD = frozenset("*?$")
_TABLE_BUCKET = re.compile(r"arn:[\w-]+:s3tables:[\w-]+:\d{12}:bucket/([a-z0-9-]{3,63})")


def settings_parameters(settings: Settings) -> dict[str, str]:
    """The parameters that follow from the settings; a `SettingsError` has all that this stack does not support."""
    paths = settings.paths
    control = settings.control
    if faults := _faults(settings):
        raise SettingsError(faults)
    entry = next(place for place in settings.input.allowed_prefixes if is_s3(place))
    sla_seconds = max(each.control.sla_seconds for each in settings.sharing or (settings,))
    found = {
        "Environment": settings.metrics.environment,
        "JobName": control.job_name,
        "MetricNamespace": settings.metrics.namespace,
        "MetricDetail": settings.metrics.detail,
        "ManifestQueueIsUsed": "yes" if settings.stream.queue_url else "no",
        "WorkBucketName": _bucket_and_key(paths.manifests)[0],
        "StagingBucketName": _bucket_and_key(paths.staging)[0],
        "LakeBucketName": _bucket_and_key(paths.output)[0],
        "OutputFolder": settings.output.folder.format(date="${file_date}"),
        "InputBucketName": _bucket_and_key(entry)[0],
        "InputPrefix": input_prefix(entry),
        **places_of(settings),
        "DatabaseName": database_of(settings) if settings.streams else settings.schema.table.partition(".")[0],
        "ClaimsTableName": settings.builder.claims,
        "SlaSeconds": f"{sla_seconds:g}",
        "HalfSlaSeconds": f"{sla_seconds / 2:g}",
        "LogLateSeconds": f"{max(each.landing_late_seconds for each in settings.sharing or (settings,)):g}",
        "JobIsAlwaysUp": "yes" if control.mode == "always" else "no",
        "MaintenanceWindow": control.maintenance_window,
    }
    return {name: value for name, value in found.items() if not (settings.streams and name in OF_ONE_STREAM)}


def places_of(settings: Settings) -> dict[str, str]:
    """The parameters by which policies name the places of a job, but for its input on S3; also those of one stream."""
    paths = settings.paths
    return {
        "ManifestsPrefix": _bucket_and_key(paths.manifests)[1],
        "StatePrefix": _bucket_and_key(paths.state)[1],
        "PendingPrefix": _bucket_and_key(settings.layout().pending_folder)[1],
        "StagingPrefix": _bucket_and_key(paths.staging)[1],
        "OutputPrefix": _bucket_and_key(paths.output)[1],
        "KinesisStreams": _listed(_kinesis_streams(settings)),
        "KafkaTopics": _listed(_topics(settings)),
        "KafkaSecrets": _listed(secrets_of(settings)),
        "SchemaFile": settings.schema.file.removeprefix("s3://"),
        "EventsTableName": settings.schema.table.partition(".")[2],
        **_iceberg(settings),
    }


def input_prefix(place: str) -> str:
    """The key of a place of input, ending with /; empty for a whole bucket."""
    key = _bucket_and_key(place)[1]
    return folder(key) if key else ""


def stack_parameters(
    template: Mapping[str, Any], *parts: Mapping[str, str], settings: Settings | None = None
) -> dict[str, str]:
    """All parameters, in the order of the template, from one mapping for each source.

    Raises:
        SettingsError: With every parameter that is missing, unknown, given twice or contradicts the settings.
    """
    given = [name for part in parts for name in part]
    values = {name: value for part in parts for name, value in part.items()}
    known = template["Parameters"]
    wanted = [name for name, about in known.items() if "Default" not in about]
    faults = [
        f"parameter {name}: not given -> expected {known[name]['Description']}" for name in wanted if name not in values
    ]
    faults += [f"parameter {name}: unknown -> expected one of the template's" for name in values if name not in known]
    faults += [f"parameter {name}: given twice -> expected once" for name in values if given.count(name) > 1]
    faults += [
        f"parameter {name}: {value!r} -> expected {known[name]['AllowedPattern']}"
        for name, value in values.items()
        if name in known and not re.fullmatch(known[name].get("AllowedPattern", ".*"), str(value), re.DOTALL)
    ]
    faults += _contradictions(values, settings) if settings and not faults else []
    if faults:
        raise SettingsError(faults)
    return {name: str(values.get(name, about.get("Default", ""))) for name, about in known.items()}


def with_names(template: dict[str, Any], parameters: Mapping[str, str]) -> dict[str, Any]:
    """A copy of the template whose policies have a resource for each name of a parameter with several names."""
    changed: dict[str, Any] = json.loads(json.dumps(template))
    several = {name: values for name in LISTS if len(values := parameters.get(name, "").split(",")) > 1}
    for statement in statements_of(changed["Resources"]):
        given = statement["Resource"]
        places = named(given if isinstance(given, list) else [given], several)
        statement["Resource"] = given if len(places) == 1 else places
    return changed


def _faults(settings: Settings) -> list[str]:
    paths = settings.paths
    places = {f"paths.{key}": place for key, place in paths if place}
    named = settings.input.allowed_prefixes
    inputs = {f"input.allowed_prefixes[{at}]": each for at, each in enumerate(named) if not is_log(each)}
    schema, queue = {"schema.file": settings.schema.file}, f"{settings.control.job_name}-manifests"
    everything = [(key, place) for key, place in (places | inputs | schema).items() if place]
    if local := [f'{key}: "{place}" -> expected a place on S3' for key, place in everything if not is_s3(place)]:
        return local
    own = [
        place
        for each in settings.streams
        for place in (each.schema.file, each.paths.output, *each.input.allowed_prefixes)
    ]
    if wild := [place for place in (*(place for _, place in everything), *own) if _WILD & set(place)]:
        return [f"{place} -> expected no *, ? or $, which IAM policies read as patterns" for place in wild]
    work = {_bucket_and_key(place)[0] for place in (paths.manifests, paths.state)}
    return _unmet(
        {
            "paths.manifests, paths.state: one bucket": len(work) == 1,
            "paths.output: a bucket of its own": _bucket_and_key(paths.output)[0] not in work,
            "paths.staging: a bucket of its own, which keeps no versions": (
                _bucket_and_key(paths.staging)[0] not in work | {"", _bucket_and_key(paths.output)[0]}
            ),
            "paths: a key after each bucket": all(_bucket_and_key(place)[1] for place in places.values()),
            "input.allowed_prefixes: one place on S3": len(inputs) == 1,
            f"stream.queue_url: empty, or without streams the URL of {queue}, which the stack makes": (
                settings.stream.queue_url.rpartition("/")[2] in ({""} if settings.streams else {"", queue})
            ),
            "kafka.clusters: secrets as secretsmanager:ARN: Glue offers neither variables nor files for them": not any(
                value.startswith(("env:", "file:"))
                for properties in settings.kafka.clusters.values()
                for value in properties.values()
            ),
            "schema.table: database.table, a table other than rejects": (
                bool(settings.streams or settings.schema.table) and not settings.schema.table.endswith(".rejects")
            ),
            "table.name: a table other than schema.table and rejects, which are not Iceberg tables": all(
                each.table.name not in {each.schema.table, f"{each.schema.table.partition('.')[0]}.rejects"}
                for each in _in_iceberg(settings, "glue")
            ),
            "table.warehouse: the ARN of a table bucket of this account": all(
                _TABLE_BUCKET.fullmatch(each.table.warehouse) for each in _in_iceberg(settings, "s3tables")
            ),
            "builder.claims: a table": bool(settings.builder.claims),
            "control.job_name: 1 to 40 lower-case letters, digits or -": bool(
                _JOB_NAME.fullmatch(settings.control.job_name)
            ),
            'metrics.sink: "cloudwatch", which the alarms need': settings.metrics.sink == "cloudwatch",
        }
    )


def _contradictions(values: Mapping[str, str], settings: Settings) -> list[str]:
    archive_days, max_wait = settings.retention.archive_days, settings.builder.max_wait_seconds
    rejects_days = settings.retention.rejects_days
    return _unmet(
        {
            f"parameter ArchiveDays: more than retention.archive_days ({archive_days})": (
                float(values["ArchiveDays"]) > archive_days
            ),
            f"parameter RejectsDays: more than retention.rejects_days ({rejects_days})": (
                float(values["RejectsDays"]) > rejects_days
            ),
            "parameter JobTimeoutMinutes: 0 with control.maintenance_window: Glue restarts no run that has a timeout": (
                float(values["JobTimeoutMinutes"]) == 0 or not settings.control.maintenance_window
            ),
            "parameter InputBucketIsNew: no with InputAccount: the stack creates buckets only in its own account": (
                not values["InputAccount"] or values["InputBucketIsNew"] == "no"
            ),
            "parameter InputKeyArn: empty with InputBucketIsNew yes: KmsKey encrypts the stack's bucket": (
                not values["InputKeyArn"] or values["InputBucketIsNew"] == "no"
            ),
            "parameters JobSubnet, JobSubnetZone, JobSecurityGroup: all three, or none": (
                len({bool(values.get(name)) for name in ("JobSubnet", "JobSubnetZone", "JobSecurityGroup")}) == 1
            ),
            "parameter KafkaClusterName: the MSK cluster's name, because kafka.clusters has AWS_MSK_IAM": (
                bool(values.get("KafkaClusterName"))
                or not any("AWS_MSK_IAM" in each.values() for each in settings.kafka.clusters.values())
            ),
            f"parameter BuilderWindowSeconds: less than builder.max_wait_seconds ({max_wait:g})": (
                float(values["BuilderWindowSeconds"]) < max_wait
            ),
        }
    )


def _unmet(expectations: Mapping[str, bool]) -> list[str]:
    """A fault such as `paths: ... -> expected ...` for each `key: expected` that does not hold."""
    return [expected.replace(": ", " -> expected ", 1) for expected, holds in expectations.items() if not holds]


def _kinesis_streams(settings: Settings) -> Iterator[str]:
    """The streams that input may come from, by their names in AWS: `*` for all of a source, which people may plan."""
    for each in settings.streams or (settings,):
        places = (place for place in each.input.allowed_prefixes if place.startswith(f"{KINESIS}://"))
        yield from (place.removeprefix(f"{KINESIS}://").partition("/")[2] or "*" for place in places)


def _topics(settings: Settings) -> Iterator[str]:
    """The topics that the jobs land."""
    for each in settings.streams or (settings,):
        yield from (log.name for log in each.logs if log.scheme == KAFKA)


def secrets_of(settings: Settings, clusters: Collection[str] | None = None) -> set[str]:
    """The ARNs of the secrets that properties of clusters refer to; of all clusters if none are given."""
    known = settings.kafka.clusters
    values = (value for name in (known if clusters is None else clusters) for value in known[name].values())
    return {value.removeprefix(_SECRET).partition("#")[0] for value in values if value.startswith(_SECRET)}


def _listed(names: Iterable[str]) -> str:
    """Names comma-separated; `*` if it is among them, for it stands for all."""
    found = sorted(set(names))
    return "*" if "*" in found else ",".join(found)


def _iceberg(settings: Settings) -> dict[str, str]:
    """What the tables of Iceberg are called where roles have rights on them; empty for other catalogs."""
    names = [each.table.name.rpartition(".") for each in _in_iceberg(settings, "glue")]
    buckets = (each.table.warehouse.rpartition("/")[2] for each in _in_iceberg(settings, "s3tables"))
    return {
        "IcebergDatabase": _listed(database for database, _, _ in names),
        "IcebergTable": _listed(f"{database}/{table}" for database, _, table in names),
        "TableBucketName": _listed(buckets),
    }


def _in_iceberg(settings: Settings, catalog: str) -> list[Settings]:
    """The settings of each stream with a table in a kind of catalog."""
    each_stream = settings.streams or (settings,)
    return [each for each in each_stream if each.has_table and each.table.catalog == catalog]


def _bucket_and_key(place: str) -> tuple[str, str]:
    bucket, _, key = place.removeprefix("s3://").partition("/")
    return bucket, key.rstrip("/")
