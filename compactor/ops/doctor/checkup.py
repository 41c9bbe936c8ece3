"""Which looks there are to take, in order, and which of them needs which other."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from compactor.core.errors import StoreUnavailable
from compactor.core.layout import canonical, is_s3
from compactor.core.ports import Clock, ObjectStore
from compactor.ops.doctor import account_checks, machine_checks
from compactor.ops.doctor.findings import Finding, fault, ok, skipped, warning
from compactor.ops.doctor.ports import Account, Machine
from compactor.ops.doctor.rights import ADD_ONLY, ALL, Right, reason, try_input, try_own_place
from compactor.ops.doctor.runner import Check
from compactor.schema.schema_file import parse_schema_file
from compactor.settings.sections import Builder, Convert, Stream
from compactor.settings.settings import Settings
from compactor.settings.types import JOURNAL_CLAIMS

_ON_S3 = ("endpoint", "clock", "credentials")
_ON_AWS = (*_ON_S3, "region")


@dataclass(frozen=True, slots=True)
class Environment:
    """What is looked at.

    Attributes:
        machine: This machine.
        account: AWS, or a stand-in; made when it is first asked for.
        store: All places.
        clock: This machine's time.
        token: In the names of objects that places are tried with; no other try has it.
    """

    machine: Machine
    account: Callable[[], Account]
    store: ObjectStore
    clock: Clock
    token: str


def machine_checks_of(machine: Machine, settings: Settings | None) -> list[Check]:
    """The looks at this machine.

    Args:
        machine: This machine.
        settings: What is to run here; None where that is not known, and the defaults stand in.
    """
    looks = [
        Check("python", partial(machine_checks.python, machine)),
        Check("java", partial(machine_checks.java, machine)),
        Check("spark", partial(machine_checks.spark, machine)),
    ]
    if settings is None or any(map(is_s3, _places(settings))):
        looks.append(Check("s3a", partial(machine_checks.s3a, machine), needs=("spark",)))
    choice = settings.convert.engine if settings else Convert().engine
    looks.append(Check("native", partial(machine_checks.native, machine, choice)))
    return [*looks, Check("disk", partial(_disks, machine, settings))]


def places_checks_of(around: Environment, settings: Settings, config: str) -> list[Check]:
    """The looks at AWS and at every place.

    Args:
        around: What is looked at.
        settings: What names the places.
        config: Where the settings are from.
    """
    checks = [*_place_checks(around, settings)]
    if not _uses_aws(settings):
        return [*checks, Check("aws", lambda: skipped("aws", "these settings name nothing there"))]
    return [*_aws_checks(around, settings), *checks, *_service_checks(around.account, settings, config)]


def _disks(machine: Machine, settings: Settings | None) -> list[Finding]:
    stream, builder = (settings.stream, settings.builder) if settings else (Stream(), Builder())
    needed_bytes = stream.manifests_in_flight * builder.target_manifest_bytes
    conf = settings.spark.conf.get("spark.local.dir", "") if settings else ""
    scratch = tuple(filter(None, conf.split(","))) or machine.scratch_folders()
    paths = [(path.strip(), "scratch of Spark and Python") for path in scratch]
    if settings and not is_s3(settings.paths.state):
        paths += [(settings.paths.state, "paths.state"), (settings.paths.output, "paths.output")]
    return machine_checks.disks(machine, paths, needed_bytes)


def _place_checks(around: Environment, settings: Settings) -> Iterator[Check]:
    own: list[tuple[str, str, str, tuple[Right, ...]]] = [
        ("manifests", settings.paths.manifests, "paths.manifests", ALL),
        ("output", settings.paths.output, "paths.output", ADD_ONLY),
        ("state", settings.paths.state, "paths.state", ALL),
    ]
    if settings.builder.pending:
        own.append(("pending", settings.builder.pending, "builder.pending", ALL))
    for prefix in settings.input.allowed_prefixes:
        look = partial(try_input, around.store, "input", prefix, "input.allowed_prefixes")
        yield Check("input", look, _needs(prefix))
    for name, place, key, rights in own:
        yield Check(name, partial(_try_own, around, name, place, key, rights), _needs(place))
    if settings.schema.file:
        yield Check("schema file", partial(_schema_file, around.store, settings), _needs(settings.schema.file))


def _try_own(around: Environment, name: str, place: str, key: str, rights: tuple[Right, ...]) -> Finding:
    # What may not be deleted is written over the next time, or it would become more with each try.
    token = f"-{around.token}" if "delete" in rights else ""
    if is_s3(place):
        return try_own_place(around.store, name, place, key, rights, token)
    try:
        with around.machine.tidied(place):
            return try_own_place(around.store, name, place, key, rights, token)
    except StoreUnavailable as exc:
        return fault(name, f"{place}: {reason(exc)}", f"free space or mend that disk, or put {key} right")


def _schema_file(store: ObjectStore, settings: Settings) -> Finding:
    schema = settings.schema
    columns = parse_schema_file(
        store.read(schema.file), schema.file, names=schema.names, max_columns=schema.max_columns
    )
    return ok("schema file", f"{schema.file}: {len(columns):,} columns")


def _aws_checks(around: Environment, settings: Settings) -> Iterator[Check]:
    named = _buckets(settings)
    # S3 tells the time whether or not there is such a bucket.
    any_bucket = next(iter(named), "compactor")
    yield Check("region", lambda: account_checks.region(around.account()))
    yield Check("endpoint", lambda: account_checks.endpoint(around.account(), any_bucket))
    yield Check("clock", lambda: account_checks.clock(around.account(), any_bucket, around.clock), ("endpoint",))
    yield Check(
        "credentials",
        lambda: account_checks.credentials(around.account(), next(iter(named), "")),
        ("endpoint", "clock"),
    )
    for name, keys in named.items():
        yield Check(f"bucket {name}", partial(_bucket, around.account, name, " and ".join(keys)), _ON_S3)


def _bucket(account: Callable[[], Account], name: str, keys: str) -> Finding:
    return account_checks.bucket(account(), name, keys)


def _service_checks(account: Callable[[], Account], settings: Settings, config: str) -> Iterator[Check]:
    control, claims = settings.control, settings.builder.claims
    wanted: Sequence[tuple[str, str, str, Callable[[Account, str], Finding]]] = (
        ("claims", claims, "builder.claims", account_checks.table),
        ("queue", control.queue_url, "control.queue_url", account_checks.queue),
        (
            "dead letters",
            control.dead_letter_queue_url,
            "control.dead_letter_queue_url",
            account_checks.dead_letter_queue,
        ),
        ("topic", control.topic_arn, "control.topic_arn", account_checks.topic),
    )
    for name, value, key, look in wanted:
        if value and value != JOURNAL_CLAIMS:
            yield Check(name, partial(_asked, account, look, value), _ON_AWS)
        else:
            yield Check(name, partial(_unnamed, name, key, value, on_s3=is_s3(settings.paths.state)))
    if is_s3(settings.paths.state):
        is_meant = "job_name" in control.model_fields_set
        place = canonical(config) if is_s3(config) else ""
        look = partial(account_checks.job, is_meant=is_meant, config=place)
        yield Check("glue job", partial(_asked, account, look, control.job_name), _ON_AWS)
    if settings.metrics.sink == "cloudwatch":
        yield Check("metrics", partial(_asked, account, account_checks.metrics, settings.metrics.namespace), _ON_AWS)


def _asked(account: Callable[[], Account], look: Callable[[Account, str], Finding], value: str) -> Finding:
    return look(account(), value)


def _unnamed(name: str, key: str, value: str, *, on_s3: bool) -> Finding:
    if value:
        return ok(name, f"in a journal below paths.state ({key} is {value}), which is for back-fills alone")
    if name == "claims" and on_s3:
        found = f"{key} is not set, and plan and the builder need a table where paths.state is on S3"
        return warning(name, found, f'name a DynamoDB table there, or "{JOURNAL_CLAIMS}" for back-fills alone')
    return skipped(name, "in SQLite below paths.state" if name == "claims" else f"{key} is not set")


def _uses_aws(settings: Settings) -> bool:
    control = settings.control
    claims = settings.builder.claims.replace(JOURNAL_CLAIMS, "")
    named = (claims, control.queue_url, control.dead_letter_queue_url, control.topic_arn)
    return any(named) or settings.metrics.sink == "cloudwatch" or any(map(is_s3, _places(settings)))


def _places(settings: Settings) -> list[str]:
    return [place for places in _named_places(settings).values() for place in places]


def _named_places(settings: Settings) -> dict[str, tuple[str, ...]]:
    """The places by the settings' keys that name them."""
    paths = settings.paths
    named = {
        "paths.manifests": (paths.manifests,),
        "paths.output": (paths.output,),
        "paths.state": (paths.state,),
        "builder.pending": (settings.builder.pending,),
        "input.allowed_prefixes": settings.input.allowed_prefixes,
        "schema.file": (settings.schema.file,),
    }
    return {key: found for key, places in named.items() if (found := tuple(filter(None, places)))}


def _buckets(settings: Settings) -> dict[str, list[str]]:
    """The buckets, each with the settings' keys that name it."""
    found: dict[str, list[str]] = {}
    for key, places in _named_places(settings).items():
        for name in dict.fromkeys(_bucket_of(place) for place in places if is_s3(place)):
            found.setdefault(name, []).append(key)
    return found


def _bucket_of(place: str) -> str:
    return canonical(place).removeprefix("s3://").partition("/")[0]


def _needs(place: str) -> tuple[str, ...]:
    return (*_ON_S3, f"bucket {_bucket_of(place)}") if is_s3(place) else ()
