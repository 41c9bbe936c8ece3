"""The role of a stream's own job: that of the shared job, on the places of this stream alone."""

import json
from typing import Any

from compactor.core.logs.names import KAFKA, is_log
from compactor.settings.settings import Settings
from deploy.resolved import Document
from deploy.stack_parameters import LISTS, input_prefix, places_of, secrets_of
from deploy.template_nodes import named

SPARK_UI = "/spark-ui/"
"""Where Glue writes the event logs of Spark; a stream's own job has a folder in it."""


def own_role(role: Document, stream: Settings) -> Document:
    """The role of a stream's own job.

    It reads what is below the stream's prefixes, also where another stream has a longer one. Settings, code, logs and
    metrics are common to all roles.

    Args:
        role: That of the shared job, as the template has it.
        stream: The settings of the stream.
    """
    own: Document = json.loads(json.dumps(role).replace(SPARK_UI, f"{SPARK_UI}{stream.name}/"))
    own["Properties"]["RoleName"] = {"Fn::Sub": f"${{JobName}}-job-{stream.name}"}
    names = _names(stream)
    for policy in own["Properties"]["Policies"]:
        statements = policy["PolicyDocument"]["Statement"]
        statements[:] = [found for each in statements if (found := _on_places(each, names))]
    return own


def _names(stream: Settings) -> dict[str, list[str]]:
    """What the parameters that name places are for a stream: any number of values each."""
    names = {name: value.split(",") if name in LISTS else [value] for name, value in places_of(stream).items()}
    prefixes = stream.input.allowed_prefixes
    names["InputPrefix"] = [input_prefix(each) for each in prefixes if not is_log(each)]
    scheme = f"{KAFKA}://"
    clusters = {each.removeprefix(scheme).partition("/")[0] for each in prefixes if each.startswith(scheme)}
    names["KafkaSecrets"] = sorted(secrets_of(stream, clusters))
    return {name: [value for value in values if value] for name, values in names.items()}


def _on_places(statement: Document, names: dict[str, list[str]]) -> Document | None:
    """A statement on the places of a stream; None if the stream has no such place."""
    if "Fn::If" in statement:
        condition, yes, no = statement["Fn::If"]
        return {"Fn::If": [condition, _on_places(yes, names) or no, no]}
    given = statement["Resource"]
    places = [_unconditional(each) for each in (given if isinstance(given, list) else [given])]
    found = named([each for place in places for each in _with_pending(place)], names)
    return {**statement, "Resource": found} if found else None


def _unconditional(place: Any) -> Any:
    """A place without the question whether the settings have a schema file at the top: the stream may have its own."""
    is_asked = isinstance(place, dict) and place.get("Fn::If", [""])[0] == "HasSchemaFile"
    return place["Fn::If"][1] if is_asked else place


def _with_pending(place: Any) -> list[Any]:
    """A place; behind the state, that of the pending parts, which are not below the state of a stream."""
    text = json.dumps(place)
    is_state = text.endswith('/${StatePrefix}/*"}')
    return [place, json.loads(text.replace("${StatePrefix}", "${PendingPrefix}"))] if is_state else [place]
