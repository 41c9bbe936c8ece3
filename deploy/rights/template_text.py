"""Writes the statements of roles and policies into the template, below lines that say so. A value in, a value out."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from deploy.rights.grants import GRANTS, Grant
from deploy.rights.key_use import key_actions
from deploy.rights.places import PLACES

_BEGIN = re.compile(r"(?P<indent> +)Statement:  # of (?P<name>\w+) in deploy/rights/(runtime_)?grants\.py")
KEY = "!If [MakesKey, !GetAtt DataKey.Arn, !Ref KmsKey]"
_READS_INPUT = "input"


@dataclass(frozen=True, slots=True)
class Table:
    """The statements of one template.

    Attributes:
        grants: By the name of the role or policy.
        places: The resources that they name, as expressions of the template.
        key: The customer's key, as an expression of the template.
    """

    grants: Mapping[str, Sequence[Grant]]
    places: Mapping[str, str]
    key: str


MAIN = Table(GRANTS, PLACES, KEY)


def with_statements(text: str, table: Table = MAIN) -> str:
    """A template whose marked policies have the statements of the table."""
    return "\n".join(_lines(text.split("\n"), table))


def _lines(lines: Sequence[str], table: Table) -> Iterator[str]:
    deeper = ""  # the indentation of statements that are replaced
    for line in lines:
        if deeper and line.startswith(deeper):
            continue
        deeper = ""
        yield line
        if found := _BEGIN.fullmatch(line):
            deeper = found["indent"] + "  "
            yield from (deeper + each for each in _statements(table.grants[found["name"]], table))


def _statements(grants: Sequence[Grant], table: Table) -> Iterator[str]:
    always = [grant for grant in grants if not grant.only_if]
    for grant in always:
        yield f"- Sid: {grant.sid}"
        yield from ("  " + line for line in _body(grant, table.places))
    for grant in grants:
        if grant.only_if:
            yield from _conditional(grant.only_if, grant, "", always[0], table)
    use = key_actions(action for grant in always for action in grant.actions)
    if use:
        yield from _conditional("HasKey", Grant("UseKey", use, ()), table.key, grants[0], table)
    if any(_READS_INPUT in grant.places for grant in grants):
        use_input = Grant("UseInputKey", ("kms:Decrypt",), ())
        yield from _conditional("HasInputKey", use_input, "!Ref InputKeyArn", grants[0], table)


def _body(grant: Grant, known: Mapping[str, str], resource: str = "") -> Iterator[str]:
    yield "Effect: Allow"
    yield f"Action: {_actions(grant.actions)}"
    places = [resource] if resource else [known[name] for name in grant.places]
    if len(places) == 1:
        yield f"Resource: {places[0]}"
    elif all(place.startswith(("!GetAtt", "!Ref")) for place in places):
        yield f"Resource: [{', '.join(places)}]"
    else:
        yield "Resource:"
        yield from (f"  - {place}" for place in places)
    if grant.condition:
        yield f"Condition: {grant.condition}"


def _conditional(condition: str, grant: Grant, resource: str, repeated: Grant, table: Table) -> Iterator[str]:
    """A statement that holds on a condition. Otherwise another one is there twice, which changes nothing.

    CloudFormation would also take `AWS::NoValue`, but stand-ins for AWS keep it in a list, and refuse the policy.
    """
    yield from ("- !If", f"  - {condition}", f"  - Sid: {grant.sid}")
    yield from ("    " + line for line in _body(grant, table.places, resource))
    yield f"  - Sid: No{grant.sid.removeprefix('Use')}"
    yield from ("    " + line for line in _body(repeated, table.places))


def _actions(actions: Sequence[str]) -> str:
    quoted = ", ".join(f'"{action}"' for action in actions)
    return quoted if len(actions) == 1 else f"[{quoted}]"
