"""A stand-in for EMR Serverless that refuses what its API refuses, as AWS's own description of it and its guide say.

moto takes any request, ends each run with success at once, and knows no token.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import Any

import botocore.session
from botocore.exceptions import ClientError, ParamValidationError
from botocore.model import ListShape, MapShape, ServiceModel, Shape, StringShape, StructureShape
from botocore.validate import ParamValidator

LIVING = {"SUBMITTED", "PENDING", "QUEUED", "SCHEDULED", "RUNNING", "CANCELLING"}
APPLICATION = "00f1abcd2efg3h09"
ROLE = "arn:aws:iam::123456789012:role/compactor-dev-emr-job"


@dataclass
class EmrStandIn:
    """The client of one account with one application.

    Attributes:
        now: The time of the service.
        first_state: The state in which runs begin.
    """

    now: Callable[[], datetime]
    first_state: str = "SCHEDULED"
    requests: list[Mapping[str, Any]] = field(default_factory=list)
    runs: list[dict[str, Any]] = field(default_factory=list)
    _tokens: dict[str, tuple[Mapping[str, Any], str]] = field(default_factory=dict)

    def start_job_run(self, **request: Any) -> dict[str, Any]:
        check("StartJobRun", request)
        self._application("StartJobRun", request)
        if request.get("mode") != "STREAMING" and "maxFailedAttemptsPerHour" in request.get("retryPolicy", {}):
            raise refusal("StartJobRun", "ValidationException", "maxFailedAttemptsPerHour is for STREAMING mode")
        if 0 < request.get("executionTimeoutMinutes", 720) < 5:
            raise refusal("StartJobRun", "ValidationException", "RunTimeout must be at least 5 minutes.")
        before = self._tokens.get(request["clientToken"])
        if before and before[0] != request:
            raise refusal("StartJobRun", "ConflictException", "the token was used with other parameters")
        if before:
            return self._answer(before[1])
        self.requests.append(request)
        run_id = f"00f{len(self.runs):013d}"
        self._tokens[request["clientToken"]] = (request, run_id)
        self.add(run_id, request.get("name"), request.get("mode", "BATCH"))
        return self._answer(run_id)

    def add(self, run_id: str, name: str | None, mode: str = "BATCH") -> None:
        """Begin a run."""
        now = self.now()
        more = {} if name is None else {"name": name}
        self.runs.append(
            {"id": run_id, "state": self.first_state, "createdAt": now, "updatedAt": now, "mode": mode, **more}
        )

    def cancel_job_run(self, **request: Any) -> dict[str, Any]:
        check("CancelJobRun", request)
        self._application("CancelJobRun", request)
        run = next((each for each in self.runs if each["id"] == request["jobRunId"]), None)
        if run is None:
            raise refusal("CancelJobRun", "ResourceNotFoundException", f"JobRun {request['jobRunId']} does not exist")
        if run["state"] not in LIVING:
            raise refusal("CancelJobRun", "ValidationException", f"job run is in {run['state']} state")
        self.set(run["id"], "CANCELLING")
        return {"applicationId": APPLICATION, "jobRunId": run["id"]}

    def set(self, run_id: str, state: str, details: str = "") -> None:
        """Change the state of a run."""
        run = next(each for each in self.runs if each["id"] == run_id)
        run.update(state=state, stateDetails=details, updatedAt=self.now())

    def get_paginator(self, operation: str) -> "EmrStandIn":
        assert operation == "list_job_runs"
        return self

    def paginate(self, **request: Any) -> Iterator[dict[str, Any]]:
        size = request.pop("PaginationConfig")["PageSize"]
        check("ListJobRuns", {**request, "maxResults": size})
        self._application("ListJobRuns", request)
        after, states = request.get("createdAtAfter"), request.get("states")
        found = [
            dict(each)
            for each in self.runs  # the API promises no order: here the oldest comes first
            if (after is None or each["createdAt"] >= after) and (states is None or each["state"] in states)
        ]
        for start in range(0, max(len(found), 1), size):
            yield {"jobRuns": found[start : start + size]}

    def _application(self, operation: str, request: Mapping[str, Any]) -> None:
        if request["applicationId"] != APPLICATION:
            raise refusal(
                operation, "ResourceNotFoundException", f"Application {request['applicationId']} does not exist"
            )

    def _answer(self, run_id: str) -> dict[str, Any]:
        return {"applicationId": APPLICATION, "jobRunId": run_id, "arn": f"arn:{run_id}"}


def refusal(operation: str, code: str, message: str) -> ClientError:
    """An error as the service answers it."""
    answer: Any = {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": 400}}
    return ClientError(answer, operation)


@cache
def _model(service: str) -> ServiceModel:
    return botocore.session.get_session().get_service_model(service)


def check(operation: str, request: Mapping[str, Any], service: str = "emr-serverless") -> None:
    """See that a request has the members, types, patterns and bounds that AWS's description names.

    Raises:
        ParamValidationError: Its client would not send it.
        ClientError: The service would refuse it.
    """
    shape = _model(service).operation_model(operation).input_shape
    assert shape is not None
    report = ParamValidator().validate(request, shape)
    if report.has_errors():
        raise ParamValidationError(report=report.generate_report())
    for path, fault in _faults(shape, request, ""):
        raise refusal(operation, "ValidationException", f"{path}: {fault}")


def _faults(shape: Shape, value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(shape, StructureShape):
        for name, member in shape.members.items():
            if name in value:
                yield from _faults(member, value[name], f"{path}.{name}")
    elif isinstance(shape, ListShape):
        for number, each in enumerate(value):
            yield from _faults(shape.member, each, f"{path}[{number}]")
    elif isinstance(shape, MapShape):
        for key, each in value.items():
            yield from _faults(shape.value, each, f"{path}.{key}")
    elif isinstance(shape, StringShape):
        yield from ((path, fault) for fault in _faults_of_text(shape, value))


def _faults_of_text(shape: StringShape, value: str) -> Iterator[str]:
    pattern = shape.metadata.get("pattern")
    if pattern and not re.fullmatch(re.sub(r"\\u00([0-9A-F]{2})", r"\\x\1", pattern), value):
        yield f"expected {pattern}"
    if shape.enum and value not in shape.enum:
        yield f"expected one of {', '.join(shape.enum)}"
    if len(value) > shape.metadata.get("max", len(value)):
        yield f"expected {shape.metadata['max']} characters at most"
