"""A stream with its own job has its own role: it allows all that a run does, and no place of another stream."""

import json
from itertools import permutations
from typing import Any

import pytest

from compactor.adapters.listed_manifests import ListedManifests
from compactor.core.errors import SettingsError
from compactor.settings.settings import Settings
from compactor.wiring import operating, streaming
from compactor.wiring.app import App
from deploy.stack_parameters import settings_parameters, with_names
from deploy.stream_faults import MAX_ROLE_NAME
from deploy.streams import logical_id, with_streams
from deploy.template_file import load_template
from tests.deployment.permissions import allowed, allows, statements
from tests.deployment.resolving import ROOT, Document, parameters_of, resources, template
from tests.deployment.test_roles_in_use import WatchedStore
from tests.deployment.test_streams_template import entry, settings_of
from tests.support.fakes import PlainEngine
from tests.support.memory_kinesis import STREAM, MemoryKinesis
from tests.support.s3_messages import notification
from tests.support.streams import StreamsInMemory, stream_settings

OWN = ("clicks", "views")
LINES = b'{"id": 1}\n\nno json\n{"id": 2}\n'
KEY = "arn:aws:kms:eu-central-1:123456789012:key/12345678-1234-1234-1234-123456789012"
S3 = ("s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload")
SECRETS = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:"


def roles_of(found: Settings, **given: str) -> dict[str, Document]:
    """The roles of the streams with jobs of their own, and that of the shared job without a name."""
    document = with_streams(template(), found)
    values = {**parameters_of("prod"), **settings_parameters(found), **given}
    known = {name: value for name, value in values.items() if name in document["Parameters"]}
    made = resources(with_names(document, known), known)
    own = {each.name: made[logical_id("JobRole", each)] for each in found.streams if each not in found.sharing}
    return {"": made["JobRole"], **own}


def logs(*places: str) -> dict[str, Any]:
    return {"input": {"allowed_prefixes": list(places)}}


def in_prod() -> Settings:
    return settings_of(
        entry("orders", schema={"table": "lake.orders", "file": "s3://example-schemas/orders.toml"}),
        entry("clicks", job="own", schema={"table": "lake.clicks", "file": "s3://example-schemas/clicks.toml"}),
        entry("views", job="own", input={"allowed_prefixes": ["s3://example-raw/views", "s3://example-raw/old/views"]}),
    )


def places_of(stream: Settings) -> list[str]:
    """A place of each kind of a stream."""
    layout, manifest = stream.layout(), "m"
    spark_ui = f"{layout.state.partition('/state/')[0]}/spark-ui/{stream.name}/"
    uris = [
        *(f"{each}/a" for each in stream.input.allowed_prefixes),
        layout.manifest(manifest),
        layout.pending_part(manifest),
        layout.accepted(manifest),
        layout.schema(1),
        layout.run("r"),
        f"{layout.rejects_folder_of('2026-01-01')}a",
        f"{layout.staging_of_attempt(manifest, 1)}a",
        f"{layout.output_folder_of('2026-01-01')}a",
        f"{layout.merged_folder}a",
        f"{spark_ui}a",
    ]
    return [f"arn:aws:s3:::{each.removeprefix('s3://')}" for each in [*uris, *filter(None, [stream.schema.file])]]


@pytest.mark.parametrize(("one", "other"), [*permutations(("orders", *OWN), 2)])
def test_no_role_reaches_the_places_of_another_stream(one: str, other: str) -> None:
    """Of every place of a stream, its role may read each, and that of another stream's own job none."""
    found = in_prod()
    roles, places = roles_of(found), places_of(found.of_stream(other))
    assert [place for place in places if not allows(roles[other if other in OWN else ""], "s3:GetObject", place)] == []
    if one in OWN:
        assert [(action, place) for place in places for action in S3 if allows(roles[one], action, place)] == []
        table = found.of_stream(other).schema.table.replace(".", "/")
        assert not allows(roles[one], "glue:UpdateTable", f"arn:aws:glue:eu-central-1:123456789012:table/{table}")


def test_a_role_of_its_own_does_what_that_of_all_does() -> None:
    """It is a copy on other places: no action more, and less only where the stream has no such place."""
    roles = roles_of(in_prod())
    for name in OWN:
        missing = allowed(roles[""]) - allowed(roles[name])
        assert {each.partition(":")[0] for each in missing} == {"kinesis", "s3tables"}
        assert not allowed(roles[name]) - allowed(roles[""])
        read = {place for sid, _, places, _ in statements(roles[name]) if sid == "Read" for place in places}
        assert f"arn:aws:s3:::example-raw/{name}/*" in read
    own, shared = ({**roles[name]["Properties"], "Policies": []} for name in ("clicks", ""))
    assert own == {**shared, "RoleName": "compactor-prod-job-clicks"}


@pytest.mark.parametrize("is_of_kinesis", [False, True], ids=["files", "records"])
def test_a_role_of_its_own_allows_what_a_run_does(is_of_kinesis: bool) -> None:
    """A run of the stream's job, with rejects, a dead letter and retention, asks for nothing that it refuses."""
    prefixes = ["s3://lake/raw/clicks", *([str(STREAM)] if is_of_kinesis else [])]
    found = stream_settings(
        "orders",
        {"name": "clicks", "job": "own", "input": {"allowed_prefixes": prefixes}},
        paths={name: f"s3://lake/{name}" for name in ("manifests", "output", "state", "staging")},
        input={"allowed_prefixes": ["s3://lake/raw", "kinesis://main"]},
        kinesis={"sources": {"main": {}}},
    )
    streams = StreamsInMemory(found)
    watched = WatchedStore(streams.store)
    kinesis = MemoryKinesis(streams.clock)
    clicks = App(found.of_stream("clicks"), clock=streams.clock, store=watched, kinesis_log=kinesis.log())
    if is_of_kinesis:
        kinesis.create()
        kinesis.put(*LINES.splitlines())
        assert streaming.lander(clicks, "kinesis").land(STREAM, max_manifests=9)
    else:
        streams.store.put("s3://lake/raw/clicks/a.ndjson", LINES)
        [info] = streams.store.list("s3://lake/raw/")
        streams.build(notification("lake", "raw/clicks/a.ndjson", len(LINES), info.etag))
        streams.seal("clicks", after_seconds=200)
    streams.store.put(f"{clicks.layout.manifests_folder}bad.json", b"{")
    for days in (0, 90):
        streams.clock.advance(days * 86_400)
        manifests = ListedManifests(streams.store, clicks.layout.manifests_folder)
        streaming.service_on(clicks, PlainEngine(watched), manifests).run(once=True)
    assert operating.verifier(clicks).verify_all().rows == 2
    assert {action for action, _ in watched.used} >= {*S3[:3], "s3:ListBucket"}
    buckets = dict.fromkeys((f"{name}BucketName" for name in ("Work", "Staging", "Lake", "Input")), "lake")
    role = resources(with_streams(template(), found), {**parameters_of("prod"), **buckets})["JobRoleOfclicks"]
    assert sorted(use for use in watched.used if not allows(role, *use)) == []


def test_names_of_other_streams_are_not_in_a_role() -> None:
    """Topics, streams of Kinesis, secrets and tables: those of the stream, several or none."""
    tables = {"catalog": "glue"}
    settings = settings_of(
        entry("orders", **logs("kafka://main/orders", "kinesis://main/orders"), table={"name": "ice.orders"}),
        entry(
            "clicks",
            job="own",
            **logs("kafka://web/clicks", "kafka://web/taps", "kinesis://main/clicks"),
            table={"name": ""},
        ),
        entry("views", job="own", table={"name": "ice.views"}),
        input={"allowed_prefixes": ["s3://example-raw", "kafka://main", "kafka://web", "kinesis://main"]},
        kafka={
            "clusters": {
                name: {"bootstrap.servers": "b:9096", "sasl.password": f"secretsmanager:{SECRETS}{name}"}
                for name in ("main", "web")
            }
        },
        kinesis={"sources": {"main": {}}},
        table=tables,
    )
    roles = roles_of(settings, KafkaClusterName="msk", KafkaSecretsKeyArn=KEY)
    places = {
        "": {"topic/msk/*/orders", "stream/orders", "secret:main", "table/ice/orders"},
        "clicks": {"topic/msk/*/clicks", "topic/msk/*/taps", "stream/clicks", "secret:web", "table/lake/clicks"},
        "views": {"table/ice/views", "table/lake/views"},
    }
    for name in OWN:
        text = json.dumps(roles[name])
        assert [each for each in places[name] if f':{each}"' not in text] == []
        assert [each for other in places if other != name for each in places[other] if f':{each}"' in text] == []
    conditional = with_streams(template(), settings)["Resources"]["JobRoleOfviews"]
    assert "null" not in json.dumps(conditional)  # where a stream has no secrets, the other branch stands
    assert all(f':{each}"' in json.dumps(roles[""]) for each in set().union(*places.values()) if "lake" not in each)


def test_places_that_iam_would_read_as_patterns() -> None:
    """Those of a stream enter its role, and are refused as those at the top are."""
    for more in (
        {"input": {"allowed_prefixes": ["s3://example-raw/cl*"]}},
        {"paths": {"output": "s3://example-lake-prod/events/a$b"}},
    ):
        with pytest.raises(SettingsError, match=r"expected no \*, \? or \$"):
            settings_parameters(settings_of(entry("orders"), entry("clicks", job="own", **more)))


def test_a_name_that_no_role_may_have_is_refused() -> None:
    """It has the names of the job and of the stream. With the longest that fits, the stack is made."""
    for length, is_fitting in ((MAX_ROLE_NAME - len("-job-") - 32, True), (MAX_ROLE_NAME - len("-") - 32, False)):
        found = settings_of(entry("orders"), entry("x" * 32, job="own"), control={"job_name": "a" * length})
        if is_fitting:
            assert settings_parameters(found)
        else:
            with pytest.raises(SettingsError, match=f"has 68 characters -> expected at most {MAX_ROLE_NAME}"):
                settings_parameters(found)


def test_the_account_of_the_input_lets_in_each_role() -> None:
    """The output has the roles of all jobs, as the other template takes them."""
    document = with_streams(template(), in_prod())
    roles = "${JobRole.Arn},${JobRoleOfclicks.Arn},${JobRoleOfviews.Arn}"
    assert document["Outputs"]["JobRoleArn"]["Value"] == {"Fn::Sub": roles}
    there = load_template(ROOT / "deploy" / "input_account.yaml")
    assert there["Parameters"]["JobRoleArn"]["Type"] == "CommaDelimitedList"
    read = there["Resources"]["InputBucketPolicy"]["Properties"]["PolicyDocument"]["Statement"]
    assert [each["Principal"] for each in read[:2]] == [{"AWS": {"Ref": "JobRoleArn"}}] * 2
