"""Whether policies are too long for IAM, which CloudFormation finds only while it creates them."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from deploy.existing_names import Known, name_of
from deploy.resolved import Resolver

MANAGED_CHARACTERS = 6144
"""The longest managed policy [IAM user guide, IAM and AWS STS quotas]."""

INLINE_CHARACTERS = 10_240
"""The longest the inline policies of a role may be together [same page]."""

_LONGEST_TYPE = "log-group:"  # what stands before a name in an ARN, at most


def policy_faults(template: Mapping[str, Any], known: Known) -> Iterator[str]:
    """The roles and policies that IAM would refuse for their length.

    Args:
        template: The template to deploy.
        known: Its parameters, and the values that CloudFormation gives by itself.
    """
    resolver = _WithArns(template, known)
    for logical, resource in template["Resources"].items():
        kind = resource["Type"]
        if kind == "AWS::IAM::ManagedPolicy":
            documents, most = [resource["Properties"]["PolicyDocument"]], MANAGED_CHARACTERS
        elif kind == "AWS::IAM::Role":
            documents = [each["PolicyDocument"] for each in resource["Properties"].get("Policies", ())]
            most = INLINE_CHARACTERS
        else:
            continue
        length = sum(characters(resolver.value(each)) for each in documents)
        if length > most:
            yield (
                f"{logical} has {length:,} characters, more than {most:,}: list fewer streams, topics or tables, "
                "or whole sources such as kinesis://main, in input.allowed_prefixes"
            )


def characters(document: Any) -> int:
    """The length of a policy: "IAM does not count white space when calculating the size of a policy" [same page]."""
    return len("".join(json.dumps(document).split()))


class _WithArns(Resolver):
    """Values of a template in which an ARN that AWS gives is as long as it will be, or a little longer."""

    def __init__(self, template: Mapping[str, Any], known: Known) -> None:
        super().__init__(template, known)
        self._resources = template["Resources"]

    def _called(self, function: str, arguments: Any) -> Any:
        if function != "Fn::GetAtt":
            return super()._called(function, arguments)
        logical = arguments.partition(".")[0] if isinstance(arguments, str) else arguments[0]
        resource = self._resources[logical]
        name = name_of(resource["Type"], self.value(resource.get("Properties", {}))) or "x" * 36
        service = resource["Type"].split("::")[1].lower()
        place = ":".join(str(self._known.get(f"AWS::{each}", "")) for each in ("Region", "AccountId"))
        return f"arn:{self._known.get('AWS::Partition', 'aws')}:{service}:{place}:{_LONGEST_TYPE}{name}:*"
