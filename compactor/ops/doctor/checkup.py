"""Lists the checks of AWS and of every place that settings name, in order, and which of them needs which other."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from compactor.control.releases import differing
from compactor.core.errors import CompactorError
from compactor.core.layout import canonical, is_s3
from compactor.core.logs.names import KAFKA, KINESIS, STREAM_EXPECTED, LogName, is_log
from compactor.core.logs.ports import KafkaLog, Log
from compactor.core.ports import Clock, ObjectStore
from compactor.ops.doctor import account_checks, service_checks
from compactor.ops.doctor.findings import Account, Finding, fault, ok, skipped, warning
from compactor.ops.doctor.rights import ADD_ONLY, ALL, try_input, try_own_place
from compactor.ops.doctor.runner import Check
from compactor.ops.doctor.service_checks import try_stream
from compactor.schema.schema_file import parse_schema_file
from compactor.settings.settings import Settings
from compactor.settings.types import JOURNAL_CLAIMS
from compactor.table.standing import ListedTable

_ON_S3 = ("endpoint", "clock", "credentials")
_ON_AWS = (*_ON_S3, "region")


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """What the checks ask."""

    account: Callable[[], Account]  # AWS, or a stand-in; made when it is first asked for
    store: ObjectStore
    clock: Clock
    columns: Callable[[Settings], Mapping[str, str]]  # the Hive types of the output's columns, by name
    kinesis: Callable[[Settings], Log]  # the streams of the sources
    releases: Callable[[Settings], Sequence[str]]  # those of the living runs; empty strings are not told
    kafka: Callable[[Settings], KafkaLog]  # the clusters of the settings
    listed: Callable[[Settings], ListedTable | None]  # the Iceberg table of the output; None without one
    ask_claims: Callable[[Settings], object]  # asks the claims for none, where they are in SQLite, and makes no file
    trial_id: str  # part of the names of the objects that places are tried with; unique to this run of the doctor


def checks_of(env: Environment, settings: Settings, config: str) -> list[Check]:
    """The checks of AWS and of every place that the settings name; `config` says where the settings are from.

    Of several streams, the places and tables of each are checked, and what they have together once.
    """
    places = [*_place_checks(env, settings, only=("state",) if settings.streams else ()), *_kafka_checks(env, settings)]
    places += _iceberg_checks(env, settings)
    for each in settings.streams:
        places += [replace(check, stream=each.name) for check in _place_checks(env, each)]
    releases = [Check("releases", partial(_releases, env, settings))] if settings.streams else []
    if not any(map(_uses_aws, (settings, *settings.streams))):
        claims = Check("claims", partial(_local_claims, env, settings))
        return [*places, claims, *releases, Check("aws", lambda: skipped("the settings name nothing on AWS"))]
    services = [*_service_checks(env, settings, config)]
    for each in settings.streams:
        services += [replace(check, stream=each.name) for check in _stream_service_checks(env, each, config)]
    return [*_aws_checks(env, settings), *places, *services, *releases]


def _kafka_checks(env: Environment, settings: Settings) -> Iterator[Check]:
    """The checks of the clusters, and of each topic that input may come from."""
    parts = settings.streams or (settings,)
    for name in settings.kafka.clusters:
        yield Check(f"kafka {name}", partial(service_checks.cluster, partial(env.kafka, settings), name))
    for each in parts:
        planned = {log for log in each.logs if log.scheme == KAFKA}
        named = {topic for prefix in each.input.allowed_prefixes if (topic := _topic(prefix)) is not None}
        for topic in sorted(planned | named):
            check = partial(_topic_check, env, each, topic, is_planned=topic in planned)
            yield Check("topic", check, (f"kafka {topic.source}",), each.name)


def _iceberg_checks(env: Environment, settings: Settings) -> Iterator[Check]:
    """The checks of the tables that list the output."""
    for each in settings.streams or (settings,):
        if (table := env.listed(each)) is not None:
            check = partial(service_checks.iceberg_table, table, each.layout().table_owner)
            yield Check("iceberg table", check, stream=each.name)


def _topic_check(env: Environment, settings: Settings, topic: LogName, *, is_planned: bool) -> list[Finding]:
    wait_seconds = settings.landing_late_seconds
    return service_checks.topic(partial(env.kafka, settings), topic, wait_seconds=wait_seconds, is_planned=is_planned)


def _topic(prefix: str) -> LogName | None:
    try:
        found = LogName.parse(prefix)
    except ValueError:  # a folder, or a whole cluster
        return None
    return found if found.scheme == KAFKA else None


def _releases(env: Environment, settings: Settings) -> Finding:
    """Whether the jobs of all streams are of one release."""
    found = {each.name: env.releases(each) for each in settings.streams}
    if apart := differing(found, settings.canary.name if settings.canary else ""):
        return warning(apart.found, apart.next_move)
    told = {release for releases in found.values() for release in releases if release}
    return ok(f"all runs have release {', '.join(told)}") if told else skipped("no run tells its release")


def uses_s3(settings: Settings) -> bool:
    """Whether any place is on S3."""
    return bool(_buckets(settings))


def _place_checks(env: Environment, settings: Settings, only: Sequence[str] = ()) -> Iterator[Check]:
    streams = [str(log) for log in settings.logs if log.scheme == KINESIS]
    for stream in () if only else streams:
        yield Check("input", partial(_stream, env, settings, stream))
    for prefix in () if only else settings.input.allowed_prefixes:
        if is_log(prefix):
            if prefix.startswith(KINESIS) and prefix not in streams:
                yield Check("input", partial(_stream, env, settings, prefix))
            continue
        yield Check("input", partial(try_input, env.store, prefix, "input.allowed_prefixes"), _needs(prefix))
    for name, place, key, rights in (
        ("manifests", settings.paths.manifests, "paths.manifests", ALL),
        ("output", settings.paths.output, "paths.output", ADD_ONLY),
        ("state", settings.paths.state, "paths.state", ALL),
        ("pending", settings.builder.pending, "builder.pending", ALL),
    ):
        if place and (name in only or not only):
            yield Check(name, partial(try_own_place, env.store, place, key, rights, env.trial_id), _needs(place))
    if settings.schema.file and not only:
        yield Check("schema file", partial(_schema_file, env.store, settings), _needs(settings.schema.file))


def _stream(env: Environment, settings: Settings, prefix: str) -> list[Finding]:
    if prefix.count("/") < STREAM_EXPECTED.count("/"):
        return [skipped(f"{prefix}: `compactor plan --dry-run` tells what it has")]
    stream, wait_seconds = LogName.parse(prefix), settings.landing_late_seconds
    is_planned = stream in settings.logs
    return try_stream(env.kinesis(settings), stream, wait_seconds=wait_seconds, is_planned=is_planned)


def _schema_file(store: ObjectStore, settings: Settings) -> Finding:
    schema = settings.schema
    columns = parse_schema_file(
        store.read(schema.file),
        schema.file,
        names=schema.names,
        max_columns=schema.max_columns,
        max_key_characters=schema.max_key_characters,
        refused=settings.refused_types,
    )
    return ok(f"{schema.file}: {len(columns):,} columns")


def _aws_checks(env: Environment, settings: Settings) -> Iterator[Check]:
    named = _buckets(settings)
    first = next(iter(named), "")
    any_bucket = first or "compactor"  # S3 tells the time whether or not the bucket exists
    yield Check("region", lambda: account_checks.region(env.account()))
    yield Check("endpoint", lambda: account_checks.endpoint(env.account(), any_bucket))
    yield Check("clock", lambda: account_checks.clock(env.account(), any_bucket, env.clock), ("endpoint",))
    yield Check("credentials", lambda: account_checks.credentials(env.account(), first), ("endpoint", "clock"))
    for name, keys in named.items():
        yield Check(f"bucket {name}", partial(_bucket, env, name, " and ".join(keys)), _ON_S3)


def _bucket(env: Environment, name: str, keys: str) -> Finding:
    return account_checks.bucket(env.account(), name, keys)


def _service_checks(env: Environment, settings: Settings, config: str) -> Iterator[Check]:
    control = settings.control
    is_on_s3 = is_s3(settings.paths.state)
    yield _claims_check(env, settings.builder.claims, is_on_s3=is_on_s3)
    for resource, value in (
        (account_checks.QUEUE, control.queue_url),
        (account_checks.DEAD_LETTERS, control.dead_letter_queue_url),
        (account_checks.TOPIC, control.topic_arn),
    ):
        yield _resource_check(env, resource, value)
    if control.target == "emr-serverless":
        yield _resource_check(env, account_checks.APPLICATION, settings.emr.application_id)
    elif is_on_s3 and (settings.sharing or not settings.streams):
        yield _job_check(env, settings, config)
    if settings.schema.table and not settings.streams:
        yield _table_check(env, settings)
    if settings.metrics.sink == "cloudwatch":
        yield _resource_check(env, account_checks.METRICS, settings.metrics.namespace)


def _stream_service_checks(env: Environment, stream: Settings, config: str) -> Iterator[Check]:
    """The checks of what one of several streams has for itself."""
    is_own = stream.member is not None and stream.member.stream.job == "own"
    if is_own and stream.control.target == "glue" and is_s3(stream.paths.state):
        yield _job_check(env, stream, config)
    if stream.schema.table:
        yield _table_check(env, stream)


def _job_check(env: Environment, settings: Settings, config: str) -> Check:
    control = settings.control
    job = account_checks.job(canonical(config) if is_s3(config) else "")
    return _resource_check(env, job, control.job_name, is_required="job_name" in control.model_fields_set)


def _table_check(env: Environment, settings: Settings) -> Check:
    name, columns = settings.schema.table, partial(env.columns, settings)
    return Check("table", lambda: service_checks.table(env.account(), name, columns), _ON_AWS)


def _resource_check(
    env: Environment, resource: account_checks.Resource, value: str, *, is_required: bool = True
) -> Check:
    if not value:
        return Check(resource.name, lambda: skipped(f"{resource.key} is not set"))
    return Check(resource.name, lambda: resource.check(env.account(), value, is_required=is_required), _ON_AWS)


def _claims_check(env: Environment, claims: str, *, is_on_s3: bool) -> Check:
    if claims == JOURNAL_CLAIMS:
        found = ok(f"in a journal below paths.state (builder.claims is {claims}), which is for back-fills only")
    elif claims:
        return Check("claims", lambda: account_checks.claims(env.account(), claims), _ON_AWS)
    elif is_on_s3:
        found = warning(
            "builder.claims is not set; with paths.state on S3, plan and the builder need a table",
            f'name a DynamoDB table there, or "{JOURNAL_CLAIMS}" for back-fills only',
        )
    else:
        found = skipped("in SQLite below paths.state")
    return Check("claims", lambda: found)


def _local_claims(env: Environment, settings: Settings) -> list[Finding]:
    """A fault if the claims cannot be read, so that nothing can be planned; nothing if all is well."""
    try:
        env.ask_claims(settings)
    except CompactorError as exc:
        return [fault(str(exc), "restore that file, or correct its rights: without it nothing is planned")]
    return []


def _uses_aws(settings: Settings) -> bool:
    control = settings.control
    claims = settings.builder.claims.replace(JOURNAL_CLAIMS, "")
    named = (claims, settings.schema.table, control.queue_url, control.dead_letter_queue_url, control.topic_arn)
    return any(named) or settings.metrics.sink == "cloudwatch" or uses_s3(settings)


def _buckets(settings: Settings) -> dict[str, list[str]]:
    """The buckets, each with the settings that name it; of streams only where the top of the file does not name it."""
    found = _own_buckets(settings)
    for each in settings.streams:
        for name, keys in _own_buckets(each).items():
            found.setdefault(name, [f"streams.{each.name}.{key}" for key in keys])
    return found


def _own_buckets(settings: Settings) -> dict[str, list[str]]:
    paths = settings.paths
    places: dict[str, tuple[str, ...]] = {
        "paths.manifests": (paths.manifests,),
        "paths.output": (paths.output,),
        "paths.state": (paths.state,),
        "builder.pending": (settings.builder.pending,),
        "input.allowed_prefixes": settings.input.allowed_prefixes,
        "schema.file": (settings.schema.file,),
    }
    found: dict[str, list[str]] = {}
    for key, named in places.items():
        for name in dict.fromkeys(_bucket_of(place) for place in named if is_s3(place)):
            found.setdefault(name, []).append(key)
    return found


def _bucket_of(place: str) -> str:
    return canonical(place).removeprefix("s3://").partition("/")[0]


def _needs(place: str) -> tuple[str, ...]:
    return (*_ON_S3, f"bucket {_bucket_of(place)}") if is_s3(place) else ()
