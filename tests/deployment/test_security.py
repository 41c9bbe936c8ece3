"""Keys, policies, boundaries, tags and input of another account: what the templates say fits AWS's documents."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cfnlint.api import lint_file
from cfnlint.decode.cfn_yaml import load

from compactor.core.errors import SettingsError
from compactor.settings.settings import load_settings
from deploy import ROOT
from deploy.parameters_file import read_parameters
from deploy.policies import policies
from deploy.policy_size import MANAGED_CHARACTERS, characters
from deploy.resolved import Document
from deploy.rights.deployer import RESOURCES, handler_actions
from deploy.rights.grants import GRANTS
from deploy.rights.template_text import with_statements
from deploy.stack import Stack
from deploy.stack_parameters import settings_parameters, stack_parameters, with_names
from deploy.template_file import TEMPLATE, load_template
from tests.deployment.drift import permission_faults
from tests.deployment.permissions import statements
from tests.deployment.resolving import parameters_of, resources, template
from tests.deployment.test_drift import current_code
from tools.checkov import TEMPLATES, accepted, differences

ACCOUNT = "123456789012"
OTHER = "210987654321"
OWN_KEY = f"arn:aws:kms:eu-central-1:{ACCOUNT}:key/12345678-abcd"
ENCRYPTED = {
    "AWS::S3::Bucket": "BucketEncryption",
    "AWS::SQS::Queue": "KmsMasterKeyId",
    "AWS::DynamoDB::Table": "SSESpecification",
    "AWS::Logs::LogGroup": "KmsKeyId",
    "AWS::SNS::Topic": "KmsMasterKeyId",
    "AWS::Lambda::Function": "KmsKeyArn",
}
"""The property with the key, of each type that can have one."""

WITHOUT_SOURCE = {"RuleOfTheInputBucket": "EventBridge sends none to KMS [SNS developer guide, sns-key-management]"}
"""Statements for a service that name no source, each with the reason."""

INPUT_ACCOUNT = ROOT / "deploy" / "input_account.yaml"
SOURCES = ("aws:SourceAccount", "aws:SourceArn", "kms:EncryptionContext:aws:logs:arn")


def stack(**given: str) -> dict[str, Document]:
    return resources(template(), parameters_of("prod") | given)


def documents(node: Any) -> Iterator[Document]:
    """All statements of all policies."""
    if isinstance(node, dict):
        if "Statement" in node:
            listed = node["Statement"]
            yield from listed if isinstance(listed, list) else [listed]
        for each in node.values():
            yield from documents(each)
    for each in node if isinstance(node, list) else ():
        yield from documents(each)


@pytest.mark.parametrize(
    ("key", "arn"), [("", None), ("new", "DataKey.Arn"), (OWN_KEY, OWN_KEY)], ids=["aws", "new", "own"]
)
def test_one_key_for_everything(key: str, arn: str | None) -> None:
    """Whatever stores something takes the customer's key if there is one, and is encrypted without it as well."""
    found = stack(KmsKey=key)
    assert ("DataKey" in found) is (key == "new")
    for name, each in found.items():
        if each["Type"] not in ENCRYPTED:
            continue
        values = json.dumps(each["Properties"].get(ENCRYPTED[each["Type"]], ""))
        assert (f'"{arn}"' in values) is bool(key), name
        if each["Type"] == "AWS::S3::Bucket":
            [rule] = each["Properties"]["BucketEncryption"]["ServerSideEncryptionConfiguration"]
            chosen = rule["ServerSideEncryptionByDefault"]["SSEAlgorithm"], rule.get("BucketKeyEnabled")
            assert chosen == (("aws:kms", True) if key else ("AES256", None)), name
        if each["Type"] == "AWS::SQS::Queue":
            assert ("SqsManagedSseEnabled" in each["Properties"]) is not bool(key), name


@pytest.mark.parametrize("key", ["new", OWN_KEY])
def test_roles_use_the_key(key: str) -> None:
    """Each role may use the key as its other actions need it, and the job also the key of the input bucket."""
    found = stack(KmsKey=key, InputBucketIsNew="no", InputKeyArn=OWN_KEY)
    expected = "DataKey.Arn" if key == "new" else OWN_KEY
    for name in ("BuilderRole", "SealerRole", "ControlRole", "JobRole"):
        of_keys = {sid: (set(actions), places) for sid, actions, places, _ in statements(found[name]) if "Key" in sid}
        assert of_keys.pop("UseKey") == ({"kms:Decrypt", "kms:GenerateDataKey"}, [expected]), name
        assert of_keys == ({"UseInputKey": ({"kms:Decrypt"}, [OWN_KEY])} if name == "JobRole" else {})
    if key == "new":
        assert [*permission_faults(found, current_code())] == []


def test_services_name_their_source() -> None:
    """A service may use roles, queues, topic, function and key only for this account or one of its resources."""
    found = stack(KmsKey="new", InputBucketIsNew="no", InputAccount=OTHER)
    served = [*documents(found), *documents(json.loads(json.dumps(load(str(INPUT_ACCOUNT)))))]
    named = [each for each in served if "Service" in (each.get("Principal") or {})]
    assert len(named) > 10
    for each in named:
        has_source = any(source in json.dumps(each.get("Condition", {})) for source in SOURCES)
        assert has_source is (each.get("Sid") not in WITHOUT_SOURCE), each
    for name, each in found.items():
        if each["Type"] == "AWS::Lambda::Permission":
            # "A SourceAccount setting prevents EventBridge from being able to invoke the function" [EventBridge user
            # guide, eb-troubleshooting]
            assert "SourceAccount" not in each["Properties"], name
            assert each["Properties"]["SourceArn"], name


def test_only_encrypted_connections() -> None:
    """Every bucket, queue and topic refuses a connection without TLS."""
    found = stack()
    refusing = {
        resource
        for each in documents(found)
        if each.get("Effect") == "Deny" and each["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
        for resource in (each["Resource"] if isinstance(each["Resource"], list) else [each["Resource"]])
    }
    for name, each in found.items():
        kind = each["Type"]
        if kind == "AWS::S3::Bucket":
            bucket = f"arn:aws:s3:::{each['Properties']['BucketName']}"
            assert {bucket, f"{bucket}/*"} <= refusing, name
        if kind in {"AWS::SQS::Queue", "AWS::SNS::Topic"}:
            assert {f"{name}.Arn", name} & refusing, name


def test_all_roles_have_the_boundary() -> None:
    """The boundary is that of every role of both templates, and none where none is given."""
    boundary = f"arn:aws:iam::{ACCOUNT}:policy/boundary"
    for given, expected in ((boundary, {boundary}), ("", {None})):
        roles = [
            each["Properties"] for each in stack(PermissionsBoundary=given).values() if each["Type"] == "AWS::IAM::Role"
        ]
        roles.append(producers(PermissionsBoundary=given)["ForwardRole"]["Properties"])
        assert len(roles) == 5
        assert {each.get("PermissionsBoundary") for each in roles} == expected


def producers(**given: str) -> dict[str, Document]:
    """The template of the input's account, with the values of the compactor's stack."""
    document = json.loads(json.dumps(load(str(INPUT_ACCOUNT))))
    compactors = parameters_of("prod")
    known = {
        "Name": compactors["JobName"],
        "InputBucketName": compactors["InputBucketName"],
        "InputPrefix": compactors["InputPrefix"],
        "InputBusArn": f"arn:aws:events:eu-central-1:{ACCOUNT}:event-bus/{compactors['JobName']}-input",
        "JobRoleArn": f"arn:aws:iam::{ACCOUNT}:role/{compactors['JobName']}-job",
        "BucketHasPolicy": "no",
        "PermissionsBoundary": "",
        **given,
    }
    return resources(document, known)


def test_input_of_another_account() -> None:
    """Its events come by a bus that only this account sends to, to a rule that the queue accepts."""
    found, other = stack(InputBucketIsNew="no", InputAccount=OTHER), producers()
    bus, policy, rule = (
        found[name]["Properties"] for name in ("InputBus", "InputBusPolicy", "ExistingInputBucketRule")
    )
    assert policy["Statement"]["Principal"] == {"AWS": f"arn:aws:iam::{OTHER}:root"}
    assert rule["EventBusName"] == "InputBus"
    assert rule["EventPattern"]["account"] == [OTHER]
    queue = json.dumps(found["EventQueuePolicy"])
    assert f":rule/{bus['Name']}/{rule['Name']}" in queue
    forward = other["ForwardRule"]["Properties"]
    [target] = forward["Targets"]
    assert target["Arn"].endswith(f":event-bus/{bus['Name']}")
    assert target["RoleArn"] == "ForwardRole.Arn"
    both = [{**each["EventPattern"], "account": []} for each in (forward, rule)]
    assert both[0] == both[1]
    allowed = {
        (each["Action"], each["Resource"])
        for each in documents(other["InputBucketPolicy"])
        if each["Effect"] == "Allow"
    }
    wanted = {
        (action, place)
        for _, actions, places, _ in statements(found["JobRole"])
        for action in actions
        for place in places
    }
    assert allowed <= wanted
    assert {action for action, _ in allowed} == {"s3:GetObject", "s3:ListBucket"}
    assert "InputBucketPolicy" not in producers(BucketHasPolicy="yes")


def test_an_own_account_needs_no_bus() -> None:
    """A bucket of this account sends its events to the default bus."""
    found = stack(InputBucketIsNew="no")
    assert not {"InputBus", "InputBusPolicy"} & found.keys()
    assert found["ExistingInputBucketRule"]["Properties"]["EventPattern"]["account"] == [ACCOUNT]
    assert f":rule/{parameters_of('prod')['JobName']}-input" in json.dumps(found["EventQueuePolicy"])


def test_contradictions() -> None:
    """Another account's bucket and its key go with a bucket that exists."""
    settings = load_settings(ROOT / "config" / "prod.toml", {})
    with pytest.raises(SettingsError) as caught:
        stack_parameters(
            template(), parameters_of("prod") | {"InputAccount": OTHER, "InputKeyArn": OWN_KEY}, settings=settings
        )
    assert [fault.partition(" ->")[0] for fault in caught.value.faults] == [
        "parameter InputBucketIsNew",
        "parameter InputKeyArn",
    ]


def test_the_template_is_written_from_the_table() -> None:
    """`python -m deploy.rights` would change nothing, and every entry of the table is in the template."""
    text = TEMPLATE.read_text()
    assert with_statements(text) == text
    assert all(f"# of {name} in deploy/rights/grants.py" in text for name in GRANTS)


@pytest.mark.parametrize("name", ["ReadOnlyPolicy", "OperatorPolicy", "TablePolicy"])
def test_policies_of_people_fit(name: str) -> None:
    """With all keys, a policy is shorter than IAM allows, and names no pattern of actions."""
    found = stack(KmsKey="new", InputBucketIsNew="no", InputKeyArn=OWN_KEY)[name]["Properties"]["PolicyDocument"]
    arns = json.dumps(found).replace(".Arn", "x" * 90)  # of names that only AWS resolves
    assert len("".join(arns.split())) < MANAGED_CHARACTERS
    assert not any("*" in action for each in found["Statement"] for action in each["Action"])
    writes = {
        action for each in found["Statement"] for action in each["Action"] if ":Put" in action or ":Delete" in action
    }
    assert bool(writes) is (name != "ReadOnlyPolicy")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with settings and parameters that a test may change."""
    for name in ("config/dev.toml", "deploy/parameters/dev.json"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes((ROOT / name).read_bytes())
    return tmp_path


def test_what_deploying_takes(checkout: Path) -> None:
    """The policies of the deployer cover all types of the template, and only what the stack names."""
    given = checkout / "deploy" / "parameters" / "dev.json"
    boundary = f"arn:aws:iam::{ACCOUNT}:policy/boundary"
    given.write_text(json.dumps({**json.loads(given.read_text()), "KmsKey": "new", "PermissionsBoundary": boundary}))
    found = policies("dev", ACCOUNT, checkout)
    deployer = [each for name, each in found.items() if name.startswith("deployer-")]
    assert characters(found["check"]) <= MANAGED_CHARACTERS
    assert "${" not in json.dumps(found["check"])
    assert all(characters(each) <= MANAGED_CHARACTERS for each in deployer)
    listed = [each for policy in deployer for each in policy["Statement"]]
    assert len({each["Sid"] for each in listed}) == len(listed)
    assert [each["Sid"] for each in listed if "${" in json.dumps(each)] == []
    assert [each["Sid"] for each in listed if each["Resource"] == ["*"]] == ["LookUp", "Anywhere"]
    within = {action for each in listed if boundary in json.dumps(each.get("Condition")) for action in each["Action"]}
    assert within == {"iam:CreateRole", "iam:PutRolePolicy", "iam:PutRolePermissionsBoundary"}
    granted = {action for each in listed for action in each["Action"]}
    assert "iam:DeleteRolePermissionsBoundary" not in granted
    types = {each["Type"] for each in template()["Resources"].values()}
    assert types == RESOURCES.keys()
    for kind in types:  # what creates it
        create = {
            each
            for each in handler_actions(kind)
            if each.rpartition(":")[2].startswith("Create") and kind.split("::")[1].lower() == each.partition(":")[0]
        }
        assert create & granted or not create, kind


def test_the_policy_of_a_key_that_exists(checkout: Path) -> None:
    """It is that of the key which the stack would create."""
    made = stack(KmsKey="new")["DataKey"]["Properties"]["KeyPolicy"]
    names = parameters_of("prod")["JobName"], parameters_of("dev")["JobName"]
    assert policies("dev", ACCOUNT, checkout)["key"] == json.loads(json.dumps(made).replace(*names))


def test_tags(tmp_path: Path) -> None:
    """The tags of the parameters file are tags of the stack, which CloudFormation gives to its resources."""
    path = tmp_path / "dev.json"
    path.write_text('{"LogDays": "7", "Tags": {"team": "data", "cost-center": "42"}}')
    given, tags = read_parameters(path)
    assert (given, tags) == ({"LogDays": "7"}, {"team": "data", "cost-center": "42"})

    class Client:
        made: dict[str, Any]

        def describe_stacks(self, **_: str) -> dict[str, Any]:
            return {"Stacks": [{"StackStatus": "UPDATE_COMPLETE"}]}

        def create_change_set(self, **more: Any) -> None:
            self.made = more
            raise InterruptedError

    client = Client()
    with pytest.raises(InterruptedError):
        Stack(client, "s", tags=tags).propose("c", "url", {})
    sent = {each["Key"]: each["Value"] for each in client.made["Tags"]}
    assert sent == {"application": "compactor", "team": "data", "cost-center": "42"}


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (
            '{"Tags": ["team"]}',
            "expected an object with one string per parameter, and the tags as an object under Tags",
        ),
        (
            '{"Tags": {"team": 1}}',
            "expected an object with one string per parameter, and the tags as an object under Tags",
        ),
        ('{"Tags": {"aws:team": "x"}}', "Tags.aws:team -> expected a key without the prefix aws:"),
        ('{"Tags": {"application": "x"}}', "the stack sets application itself"),
        ('{"Tags": {"team": ""}}', "expected a value of 1 to 256 characters"),
        ('["LogDays"]', "expected an object with one string per parameter"),
        ("{", "expected an object with one string per parameter"),
    ],
)
def test_parameters_that_are_none(tmp_path: Path, text: str, fault: str) -> None:
    """The error says what is wrong with the file."""
    path = tmp_path / "dev.json"
    path.write_text(text)
    with pytest.raises(SettingsError) as caught:
        read_parameters(path)
    assert fault in caught.value.faults[0]


def test_cfn_lint_finds_nothing_in_the_template_of_the_input_account() -> None:
    """The linter accepts the second template as well."""
    assert [str(match) for match in lint_file(INPUT_ACCOUNT)] == []


def test_the_accepted_findings_of_checkov() -> None:
    """Each has a reason and names resources that exist; another finding, or one that is gone, is reported."""
    known = {name for path in TEMPLATES for name in load_template(ROOT / path)["Resources"]}
    table = accepted()
    for check, entry in table.items():
        assert entry.keys() == {"resources", "reason"}, check
        assert len(entry["reason"]) > 40, check
        assert set(entry["resources"]) <= known, check
    found = {(check, resource) for check, entry in table.items() for resource in entry["resources"]}
    assert [*differences(found, table)] == []
    assert [*differences(found | {("CKV_1", "Job")}, table)] == ["CKV_1 Job: found"]
    assert [*differences(found - {("CKV_AWS_195", "Job")}, table)] == ["CKV_AWS_195 Job: accepted, but no longer found"]
    assert all((ROOT / each).is_file() for each in TEMPLATES)


def test_names_are_exact() -> None:
    """Several names of a kind are several resources, never what they begin with; a table stands in its database."""
    secret = f"arn:aws:secretsmanager:eu-central-1:{ACCOUNT}:secret:"
    named = {
        "KinesisStreams": "orders,clicks",
        "KafkaTopics": "orders,clicks",
        "KafkaSecrets": f"{secret}kafka-a,{secret}billing-b",
        "KafkaClusterName": "main",
        "IcebergDatabase": "sales,web",
        "IcebergTable": "sales/orders,web/clicks",
        "TableBucketName": "sales-tables,web-tables",
    }
    given = {**parameters_of("prod"), **named}
    found = resources(with_names(template(), given), given)
    role = json.dumps(found["JobRole"])
    for value in named.values():
        assert f'{value}"' not in role or "," not in value
        assert all(f'{each}"' in role or f"{each}/" in role for each in value.split(","))
    for other in (f"{secret}root", "table/sales/clicks", "stream/other"):
        assert other not in role
    assert "secret:*" not in role
    assert with_names(template(), parameters_of("prod")) == template()


@pytest.mark.parametrize("path", [ROOT / each for each in TEMPLATES], ids=lambda path: path.stem)
def test_every_text_has_a_pattern(path: Path) -> None:
    """A parameter that enters a policy takes none of what IAM reads as a pattern or a variable."""
    document = load_template(path)
    for name, about in document.get("Parameters", {}).items():
        assert about["Type"] == "Number" or "AllowedValues" in about or "AllowedPattern" in about, name
        pattern = about.get("AllowedPattern", "")
        taken = [text for text in ("raw/*", "raw?", "${aws:username}", "a*") if pattern and re.fullmatch(pattern, text)]
        assert taken == [], name


def test_places_that_iam_would_read_as_patterns() -> None:
    """The settings are refused, as are parameters that a person gives."""
    settings = load_settings(ROOT / "config" / "prod.toml", {})
    for place in ("s3://raw/in*", "s3://raw/in?", "s3://raw/${aws:username}/"):
        wrong = replace(settings, input=settings.input.model_copy(update={"allowed_prefixes": (place,)}))
        with pytest.raises(SettingsError, match=r"expected no \*, \? or \$"):
            settings_parameters(wrong)
    given = parameters_of("prod") | {"ArtefactBucketName": "*"}
    with pytest.raises(SettingsError, match=r"parameter ArtefactBucketName: '\*' -> expected"):
        stack_parameters(template(), given, settings=settings)
