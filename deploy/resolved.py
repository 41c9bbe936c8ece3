"""Resolves the template with parameters, as CloudFormation does, to what is known without AWS."""

import re
from collections.abc import Mapping
from typing import Any

Document = dict[str, Any]
_VARIABLE = re.compile(r"\$\{(!?)([^}]+)\}")


class Resolver:
    """Values of a template. What AWS alone knows stays a name: `!Ref Q` is `Q`, `!GetAtt Q.Arn` is `Q.Arn`."""

    def __init__(self, document: Mapping[str, Any], known: Mapping[str, str | None]) -> None:
        self._conditions = document["Conditions"]
        self._known = known

    def holds(self, name: str) -> bool:
        """Whether a condition of the template holds."""
        return bool(self._condition(self._conditions[name]))

    def value(self, node: Any) -> Any:
        """A value without functions; nothing where it is `AWS::NoValue`."""
        if isinstance(node, list):
            return [value for value in map(self.value, node) if value is not None]
        if not isinstance(node, dict):
            return node
        function, arguments = next(iter(node.items()), ("", None))
        if function == "Ref" or function.startswith("Fn::"):
            return self._called(function, arguments)
        filled = {key: self.value(each) for key, each in node.items()}
        return {key: value for key, value in filled.items() if value is not None}

    def _condition(self, node: Document) -> bool:
        [(function, arguments)] = node.items()
        if function == "Fn::Equals":
            one, other = (self.value(each) for each in arguments)
            return str(one) == str(other)
        if function == "Fn::Not":
            return not self._condition(arguments[0])
        if function == "Fn::And":
            return all(map(self._condition, arguments))
        if function != "Condition":
            raise ValueError(f"{function}: expected Fn::Equals, Fn::Not, Fn::And or Condition")
        return self.holds(arguments)

    def _called(self, function: str, arguments: Any) -> Any:
        if function == "Ref":
            return self._known.get(arguments, arguments)
        if function == "Fn::GetAtt":
            return arguments if isinstance(arguments, str) else ".".join(arguments)
        if function == "Fn::Sub":
            return _VARIABLE.sub(self._substituted, arguments)
        if function != "Fn::If":
            raise ValueError(f"{function}: expected Ref, Fn::GetAtt, Fn::Sub or Fn::If")
        condition, yes, no = arguments
        return self.value(yes if self.holds(condition) else no)

    def _substituted(self, match: re.Match[str]) -> str:
        is_literal, name = match.groups()
        return f"${{{name}}}" if is_literal else str(self._known.get(name, name))


class Filler(Resolver):
    """Values of a template in which functions stay where AWS alone knows the value."""

    def _called(self, function: str, arguments: Any) -> Any:
        if function == "Ref" and arguments not in self._known:
            return {function: arguments}
        if function == "Fn::GetAtt":
            return {function: arguments}
        found = super()._called(function, arguments)
        return {function: found} if function == "Fn::Sub" and "${" in found else found

    def _substituted(self, match: re.Match[str]) -> str:
        is_literal, name = match.groups()
        if is_literal or name not in self._known:
            return match[0]
        return str(self._known[name]).replace("${", "${!")


def pseudo_parameters(region: str, account: str) -> dict[str, str | None]:
    """The values that CloudFormation gives by itself."""
    partition = next((name for start, name in _PARTITIONS.items() if region.startswith(start)), "aws")
    return {"AWS::Partition": partition, "AWS::Region": region, "AWS::AccountId": account, "AWS::NoValue": None}


_PARTITIONS = {"cn-": "aws-cn", "us-gov-": "aws-us-gov"}
