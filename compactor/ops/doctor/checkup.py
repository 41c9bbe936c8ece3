"""Lists the checks of AWS and of every place in the settings, in order, each with the checks that it needs."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

from compactor.core.errors import CompactorError
from compactor.core.layout import canonical, is_s3
from compactor.core.logs.names import KAFKA, KINESIS, is_log
from compactor.core.logs.ports import KafkaLog, Log
from compactor.core.ports import Clock, ObjectStore
from compactor.ops.doctor import account_checks, service_checks
from compactor.ops.doctor.findings import Account, Check, Finding, fault, ok, skipped, warning
from compactor.ops.doctor.rights import ADD_ONLY, ALL, try_input, try_own_place
from compactor.schema.schema_of_settings import parsed_schema
from compactor.settings.settings import Settings
from compactor.settings.types import JOURNAL_CLAIMS
from compactor.table.standing import ListedTable

_ON_S3 = ("endpoint", "clock", "credentials")
_ON_AWS = (*_ON_S3, "region")


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """The checks' dependencies."""

    account: Callable[[], Account]  # AWS, or a stand-in; created on first use
    store: ObjectStore
    clock: Clock
    columns: Callable[[Settings], Mapping[str, str]]  # the Hive types of the output's columns, by name
    kinesis: Callable[[Settings], Log]  # the streams of the sources
    kafka: Callable[[Settings], KafkaLog]  # the clusters in the settings
    listed: Callable[[Settings], ListedTable | None]  # the Iceberg table of the output; None without one
    ask_claims: Callable[[Settings], object]  # looks up no claims, if they are in SQLite, and creates no file
    trial_id: str  # part of the names of test objects; unique to this run of the doctor


def checks_of(env: Environment, settings: Settings, config: str) -> list[Check]:
    """The checks of AWS and of every place in the settings; `config` is the source of the settings.

    With several streams, each one's places and tables are checked, and shared resources are checked once.
    """
    streams = settings.streams
    places = [*_own_places(env, settings)] if streams else [*_places(env, settings)]
    places += [
        Check(f"kafka {name}", partial(service_checks.cluster, partial(env.kafka, settings), name))
        for name in settings.kafka.clusters
    ]
    for each in streams or (settings,):
        places += [replace(check, stream=each.name) for check in _logs_and_tables(env, each)]
    for each in streams:
        places += [replace(check, stream=each.name) for check in _places(env, each)]
    if not any(map(_uses_aws, (settings, *streams))):
        claims = Check("claims", partial(_local_claims, env, settings))
        return [*places, claims, Check("aws", lambda: skipped("the settings name nothing on AWS"))]
    services = [*_services(env, settings, config)]
    for each in streams:
        services += [replace(check, stream=each.name) for check in _services_of_stream(env, each, config)]
    return [*_account(env, settings), *places, *services]


def uses_s3(settings: Settings) -> bool:
    """Whether any place is on S3."""
    return bool(_buckets(settings))


def _places(env: Environment, settings: Settings) -> Iterator[Check]:
    """The checks of the places of a job, or of one of several streams."""
    prefixes = settings.input.allowed_prefixes
    for stream in (each for each in prefixes if each.startswith(f"{KINESIS}://")):
        yield Check(
            "input",
            partial(
                service_checks.try_stream,
                partial(env.kinesis, settings),
                stream,
                wait_seconds=settings.landing_late_seconds,
            ),
        )
    for prefix in (each for each in prefixes if not is_log(each)):
        yield Check("input", partial(try_input, env.store, prefix, "input.allowed_prefixes"), _needs(prefix))
    places = settings.paths
    yield _own_place(env, "manifests", places.manifests, "paths.manifests")
    yield Check(
        "output",
        partial(try_own_place, env.store, places.output, "paths.output", ADD_ONLY, env.trial_id),
        _needs(places.output),
    )
    yield from _own_places(env, settings)
    if settings.schema.file:
        yield Check("schema file", partial(_schema_file, env.store, settings), _needs(settings.schema.file))


def _own_places(env: Environment, settings: Settings) -> Iterator[Check]:
    for name in ("state", "staging"):
        if place := getattr(settings.paths, name):
            yield _own_place(env, name, place, f"paths.{name}")


def _own_place(env: Environment, name: str, place: str, key: str) -> Check:
    return Check(name, partial(try_own_place, env.store, place, key, ALL, env.trial_id), _needs(place))


def _logs_and_tables(env: Environment, settings: Settings) -> Iterator[Check]:
    """The checks of each Kafka topic of the input, and of the table that lists the output."""
    wait_seconds = settings.landing_late_seconds
    for topic in (log for log in settings.logs if log.scheme == KAFKA):
        check = partial(service_checks.topic, partial(env.kafka, settings), topic, wait_seconds=wait_seconds)
        yield Check("topic", check, (f"kafka {topic.source}",))
    if (table := env.listed(settings)) is not None:
        yield Check("iceberg table", partial(service_checks.iceberg_table, table, settings.layout().table_owner))


def _schema_file(store: ObjectStore, settings: Settings) -> Finding:
    uri = settings.schema.file
    return ok(f"{uri}: {len(parsed_schema(settings, store.read(uri), uri)):,} columns")


def _account(env: Environment, settings: Settings) -> Iterator[Check]:
    """The checks of the account, and of the buckets."""
    named = _buckets(settings)
    first = next(iter(named), "")
    any_bucket = first or "compactor"  # S3 reports the time whether or not the bucket exists
    yield Check("region", lambda: account_checks.region(env.account()))
    yield Check("endpoint", lambda: account_checks.endpoint(env.account(), any_bucket))
    yield Check("clock", lambda: account_checks.clock(env.account(), any_bucket, env.clock), ("endpoint",))
    yield Check("credentials", lambda: account_checks.credentials(env.account(), first), ("endpoint", "clock"))
    for name, key in named.items():
        yield _on_aws(env, f"bucket {name}", partial(account_checks.bucket, name=name, key=key), _ON_S3)


def _services(env: Environment, settings: Settings, config: str) -> Iterator[Check]:
    control, claims = settings.control, settings.builder.claims
    is_on_s3 = is_s3(settings.paths.state)
    if claims == JOURNAL_CLAIMS:
        found = ok(f"in a journal below paths.state (builder.claims is {claims}), which is for back-fills only")
        yield Check("claims", lambda: found)
    elif claims:
        yield _on_aws(env, "claims", partial(account_checks.claims, name=claims))
    else:
        missing = "builder.claims is not set; with paths.state on S3, plan and the builder need a table"
        move = f'name a DynamoDB table there, or "{JOURNAL_CLAIMS}" for back-fills only'
        lacking = warning(missing, move) if is_on_s3 else skipped("in SQLite below paths.state")
        yield Check("claims", lambda: lacking)
    yield _named(env, "queue", "control.queue_url", control.queue_url, account_checks.queue)
    letters = control.dead_letter_queue_url
    yield _named(env, "dead letters", "control.dead_letter_queue_url", letters, account_checks.dead_letters)
    yield _named(env, "topic", "control.topic_arn", control.topic_arn, account_checks.topic)
    if settings.service == "EMR Serverless":
        application = settings.emr.application_id
        yield _named(env, "emr application", "emr.application_id", application, account_checks.application)
    elif settings.service == "ECS":
        yield _named(env, "ecs cluster", "ecs.cluster", settings.ecs.cluster, account_checks.cluster)
    elif is_on_s3 and (settings.sharing or not settings.streams):
        yield _job(env, settings, config)
    if settings.schema.table and not settings.streams:
        yield _table(env, settings)
    if settings.metrics.sink == "cloudwatch":
        yield _on_aws(env, "metrics", lambda account: account_checks.metrics(account, settings.metrics.namespace))


def _services_of_stream(env: Environment, stream: Settings, config: str) -> Iterator[Check]:
    """The checks of what a stream does not share."""
    is_own = stream.member is not None and stream.member.stream.job == "own"
    if is_own and stream.service == "Glue" and is_s3(stream.paths.state):
        yield _job(env, stream, config)
    if stream.schema.table:
        yield _table(env, stream)


def _job(env: Environment, settings: Settings, config: str) -> Check:
    control, place = settings.control, canonical(config) if is_s3(config) else ""
    is_required = "job_name" in control.model_fields_set
    check = partial(account_checks.job, config=place, is_required=is_required)
    return _named(env, "glue job", "control.job_name", control.job_name, check)


def _table(env: Environment, settings: Settings) -> Check:
    name, columns = settings.schema.table, partial(env.columns, settings)
    return _on_aws(env, "table", lambda account: service_checks.table(account, name, columns))


def _named(env: Environment, name: str, key: str, value: str, check: Callable[[Account, str], Finding]) -> Check:
    """The check of an optional resource in a setting."""
    if not value:
        return Check(name, lambda: skipped(f"{key} is not set"))
    return _on_aws(env, name, lambda account: check(account, value))


def _on_aws(
    env: Environment, name: str, check: Callable[[Account], Finding], needs: tuple[str, ...] = _ON_AWS
) -> Check:
    return Check(name, lambda: check(env.account()), needs)


def _local_claims(env: Environment, settings: Settings) -> list[Finding]:
    """A fault if the claims cannot be read, so that nothing can be planned; else nothing."""
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


def _buckets(settings: Settings) -> dict[str, str]:
    """The buckets, each with the first setting that names it."""
    found: dict[str, str] = {}
    for each in (settings, *settings.streams):
        of = "" if each is settings else f"streams.{each.name}."
        named = [
            *((f"paths.{key}", place) for key, place in each.paths),
            *(("input.allowed_prefixes", prefix) for prefix in each.input.allowed_prefixes),
            ("schema.file", each.schema.file),
        ]
        for key, place in named:
            if is_s3(place):
                found.setdefault(_bucket_of(place), of + key)
    return found


def _bucket_of(place: str) -> str:
    return canonical(place).removeprefix("s3://").partition("/")[0]


def _needs(place: str) -> tuple[str, ...]:
    return (*_ON_S3, f"bucket {_bucket_of(place)}") if is_s3(place) else ()
