"""Files as services write them, made after their public samples, each with the records that it holds.

CloudTrail and its digests, CloudWatch Logs subscriptions through Firehose, OTLP by the exporter of the Collector and
pretty-printed, and EventBridge events; and those that are lines: AWS WAF, Route 53 Resolver, events of Kubernetes,
containers of Docker, journald, Zeek, GA4, Segment, events of GitHub, and mongoexport.
"""
# ruff: noqa: E501 - tables read best in full lines

import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

OTLP = "resourceLogs[].scopeLogs[].logRecords[]"


@dataclass(frozen=True)
class Shape:
    """One file.

    Attributes:
        path: Where its records are; empty if each document is one.
        records: Its records, with what is carried into them.
        keep: The keys to carry.
        types: Types of some columns.
        values: The typed values of the first record.
        refused: The reasons of its rejects, in order.
        status: Of the file.
        exit_code: Of a call of `compact` on it.
        is_recognised: Whether `auto` finds the path.
    """

    name: str
    data: bytes
    path: str
    records: list[dict[str, Any]]
    keep: tuple[str, ...] = ()
    types: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)
    refused: tuple[str, ...] = ()
    status: str = "compacted"
    exit_code: int = 0
    is_recognised: bool = True


def compact_json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def cloudtrail_event(number: int) -> dict[str, Any]:
    return {
        "eventVersion": "1.08",
        "userIdentity": {"type": "IAMUser", "arn": f"arn:aws:iam::123456789012:user/u{number}", "userName": "Mary"},
        "eventTime": f"2023-07-19T21:17:{number % 60:02d}Z",
        "eventSource": "iam.amazonaws.com",
        "eventName": "CreateUser",
        "awsRegion": "us-east-1",
        "sourceIPAddress": "192.0.2.0",
        "userAgent": 'aws-cli/2.13.5 "[x]" {y}',
        "requestParameters": {"userName": "Rich\u00e4rd\n"},
        "responseElements": None,
        "eventID": f"ba0801a1-87ec-4d26-be87-{number:012d}",
        "readOnly": False,
        "eventType": "AwsApiCall",
        "managementEvent": True,
    }


def cloudtrail_digest() -> dict[str, Any]:
    return {
        "awsAccountId": "111122223333",
        "digestStartTime": "2015-08-17T14:01:31Z",
        "digestPublicKeyFingerprint": "31e8b5433410dfb61a9dc45cc65b22ff",
        "newestEventTime": "2015-08-17T14:52:27Z",
        "logFiles": [
            {"s3Bucket": "b", "s3Object": "AWSLogs/a.json.gz", "hashValue": "9bb6", "hashAlgorithm": "SHA-256"}
        ],
    }


def subscription(owner: str, kind: str, events: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "messageType": kind,
        "owner": owner,
        "logGroup": "/aws/lambda/checkout",
        "logStream": "2024/05/01/[$LATEST]4a3b",
        "subscriptionFilters": ["Destination"],
        "logEvents": events,
    }


def log_event(number: int) -> dict[str, Any]:
    return {
        "id": f"{number:056d}",
        "timestamp": 1510109208016 + number,
        "message": f'{{"level": "INFO", "n": {number}}}\n',
    }


def log_record(number: int) -> dict[str, Any]:
    return {
        "timeUnixNano": str(1544712660300000000 + number),
        "severityNumber": 10,
        "severityText": "Information",
        "traceId": "5b8efff798038103d269b633813fc60c",
        "body": {"stringValue": "Example log record"},
        "attributes": [{"key": "double.attribute", "value": {"doubleValue": 637.704}}],
    }


def resource_logs(number: int, records: list[dict[str, Any]]) -> dict[str, Any]:
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": f"my.service{number}"}}]}
    scope = {"name": "my.library", "version": "1.0.0"}
    return {
        "resource": resource,
        "scopeLogs": [{"scope": scope, "logRecords": records, "schemaUrl": "u"}],
        "schemaUrl": "u",
    }


def carried(document: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: document[key] for key in keys}


def shapes() -> list[Shape]:
    events = [cloudtrail_event(number) for number in range(30)]
    cloudtrail = compact_json({"Records": events})
    batches = [
        subscription("123456789123", "DATA_MESSAGE", [log_event(number) for number in range(3)]),
        subscription(
            "CloudwatchLogs", "CONTROL_MESSAGE", [{"id": "", "timestamp": 1, "message": "CWL CONTROL MESSAGE"}]
        ),
        subscription("123456789123", "DATA_MESSAGE", [log_event(9)]),
    ]
    kept = ("owner", "logGroup")
    of_batches = [{**carried(each, *kept), **event} for each in batches for event in each["logEvents"]]
    exports = [
        {"resourceLogs": [resource_logs(n, [log_record(n)] * n), resource_logs(9, [log_record(9)])]} for n in range(3)
    ]
    of_exports = [
        {"resource": each["resource"], "scope": inner["scope"], **record}
        for export in exports
        for each in export["resourceLogs"]
        for inner in each["scopeLogs"]
        for record in inner["logRecords"]
    ]
    bus = [
        {"version": "0", "id": str(n), "detail-type": "Object Created", "source": "aws.s3", "account": "1",
         "time": "2021-11-12T00:00:00Z", "region": "ca-central-1", "resources": ["arn:aws:s3:::b"], "detail": {"n": n}}
        for n in range(4)
    ]  # fmt: skip
    at = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    lines: list[tuple[str, list[dict[str, Any]], dict[str, str], dict[str, Any]]] = [
        ("waf", [{"timestamp": 1576280412771 + n, "formatVersion": 1, "action": "BLOCK", "ruleGroupList": [],
                  "httpRequest": {"clientIp": "192.0.2.1", "headers": [{"name": "Host", "value": "x"}]}} for n in range(3)],
         {"timestamp": "long"}, {"timestamp": 1576280412771}),
        ("resolver", [{"version": "1.100000", "account_id": "1", "query_name": "a.", "answers": [{"Rdata": "192.0.2.2"}],
                       "srcids": {"instance": f"i-{n}"}} for n in range(3)], {"version": "double"}, {"version": 1.1}),
        ("kubernetes", [{"kind": "Event", "auditID": str(n), "verb": "get",
                         "objectRef": {"resource": "pods"}, "annotations": {"a/b": "c"},
                         "requestReceivedTimestamp": "2026-01-02T03:04:05.000000Z"} for n in range(3)],
         {"requestReceivedTimestamp": "timestamp"}, {"requestReceivedTimestamp": at}),
        ("docker", [{"log": '\u001b[32mGET /\u001b[0m "ok"\n', "stream": "stdout",
                     "time": f"2026-01-02T03:04:05.00000000{n}Z"} for n in range(3)], {}, {}),
        ("journald", [{"__REALTIME_TIMESTAMP": str(1767323045000000 + n), "_PID": "412", "PRIORITY": "6",
                       "MESSAGE": [72, 105, 255]} for n in range(3)], {"_PID": "long"}, {"_PID": 412}),
        ("zeek", [{"ts": 1767323045.25 + n, "uid": f"C{n}", "id.orig_h": "192.0.2.1", "id.orig_p": 49152, "tunnel_parents": []}
                  for n in range(3)], {"ts": "double", "id.orig_p": "long"}, {"ts": 1767323045.25, "id.orig_p": 49152}),
        ("ga4", [{"event_date": "20260102", "event_timestamp": str(1767323045000000 + n), "event_value_in_usd": 1.5,
                  "event_params": [{"key": "page", "value": {"string_value": "/", "int_value": None}}], "items": []}
                 for n in range(3)], {"event_timestamp": "long"}, {"event_timestamp": 1767323045000000}),
        ("segment", [{"type": "track", "messageId": f"m-{n}", "anonymousId": None, "receivedAt": "2026-01-02T03:04:05.000Z",
                      "context": {"ip": "192.0.2.1", "library": {"name": "x"}}, "properties": {"total": 1.5}}
                     for n in range(3)], {"receivedAt": "timestamp"}, {"receivedAt": at}),
        ("github", [{"id": str(n), "type": "PushEvent", "public": True, "created_at": "2026-01-02T03:04:05Z",
                     "actor": {"id": 1, "login": "x"}, "payload": {"commits": [{"sha": "0"}]}} for n in range(3)],
         {"public": "boolean", "created_at": "timestamp"}, {"public": True, "created_at": at}),
        ("mongoexport", [{"_id": {"$oid": f"507f1f77bcf86cd79943901{n}"}, "n": {"$numberLong": "5"},
                          "at": {"$date": "2026-01-02T03:04:05Z"}, "price": {"$numberDecimal": "1.50"}} for n in range(3)],
         {"_id": "objectid", "n": "long", "at": "timestamp", "price": "decimal(9,2)"},
         {"_id": "507f1f77bcf86cd799439010", "n": 5, "at": at, "price": Decimal("1.50")}),
    ]  # fmt: skip
    return [
        Shape("cloudtrail.json.gz", gzip.compress(cloudtrail.encode()), "Records[]", events,
              types={"eventTime": "timestamp", "readOnly": "boolean"}, values={"readOnly": False}),
        Shape("indented.json", json.dumps({"Records": events}, indent=2).encode(), "Records[]", events),
        Shape("digest.json", compact_json(cloudtrail_digest()).encode(), "Records[]", [],
              refused=("no_records",), exit_code=3, is_recognised=False),
        Shape("empty.json", b'{"Records":[]}', "Records[]", []),
        Shape("null.json", b'{"Records":null}', "Records[]", [], refused=("no_records",), exit_code=3, is_recognised=False),
        Shape("cut.json", cloudtrail[:-1].encode(), "Records[]", [], status="unreadable", exit_code=3),
        Shape("cut-inside.json", cloudtrail[:-40].encode(), "Records[]", [], status="unreadable", exit_code=3),
        Shape("no-objects.json", b'{"Records":[{"a":1},{"a":2},{"a":3},7,"x",null,[1]]}', "Records[]",
              [{"a": 1}, {"a": 2}, {"a": 3}], refused=("not_an_object",) * 4, exit_code=3),
        Shape("late.json", b'{"logEvents":[{"a":1}],"owner":"x","logGroup":"g"}', "logEvents[]", [], kept,
              status="not_ndjson", exit_code=3),
        Shape("subscription.gz", b"".join(gzip.compress(compact_json(each).encode()) for each in batches), "logEvents[]",
              of_batches, kept, {"timestamp": "long"}, {"timestamp": 1510109208016, "owner": "123456789123"}),
        Shape("otlp.jsonl", "".join(compact_json(each) + "\n" for each in exports).encode(), OTLP, of_exports,
              ("resource", "scope"), {"severityNumber": "long"}, {"severityNumber": 10}),
        Shape("otlp.json", json.dumps(exports[2], indent=2).encode(), OTLP, of_exports[-3:], ("resource", "scope")),
        Shape("bus.json", "".join(map(compact_json, bus)).encode(), "", bus),
        Shape("bus.jsonl", "\n".join(map(compact_json, bus)).encode(), "", bus),
        *(Shape(f"{name}.log", "\n".join(map(compact_json, of)).encode(), "", of, types=types, values=values)
          for name, of, types, values in lines),
    ]  # fmt: skip
