"""What the catalogs of AWS are sent, as their documents describe it: no account of AWS has seen these requests."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from compactor.core.errors import AccessError
from compactor.settings.settings import parse_settings
from compactor.wiring.app import App
from compactor.wiring.opening import table_catalog
from tests.support.http_server import serving
from tests.support.table_catalogs import OWNER, version

ARN = "arn:aws:s3tables:eu-west-1:123456789012:bucket/lake"
REFUSED = {"error": {"message": "not allowed", "type": "ForbiddenException", "code": 403}}
ABSENT = {"error": {"message": "no such table", "type": "NoSuchTableException", "code": 404}}


@dataclass
class Endpoint:
    """Has no table, and lets no one make one.

    Attributes:
        asked: The method, the path and the body of each request.
        signed: What each was signed with.
    """

    url: str = ""
    asked: list[tuple[str, str, Any]] = field(default_factory=list)
    signed: list[str] = field(default_factory=list)


@contextmanager
def endpoint() -> Iterator[Endpoint]:
    """One on this machine."""
    seen = Endpoint()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(*((200, {"defaults": {}, "overrides": {}}) if "/v1/config" in self.path else (404, ABSENT)))

        def do_POST(self) -> None:
            self._answer(403, REFUSED)

        def _answer(self, status: int, answer: dict[str, Any]) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            seen.asked.append((self.command, self.path, json.loads(body) if body else None))
            seen.signed.append(self.headers.get("Authorization", ""))
            data = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as url:
        seen.url = f"{url}/iceberg"
        yield seen


@pytest.mark.parametrize(
    ("kind", "warehouse", "location"),
    [("glue", "123456789012", "s3://lake/events/output/_table"), ("s3tables", ARN, None)],
)
def test_making_a_table(monkeypatch: pytest.MonkeyPatch, kind: str, warehouse: str, location: str | None) -> None:
    """Each request is signed for the service; Glue gets the place of the table's metadata, S3 Tables chooses one."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    with endpoint() as found:
        settings = parse_settings(
            {
                "paths": {name: f"s3://lake/events/{name}" for name in ("manifests", "output", "state")},
                "input": {"allowed_prefixes": ["s3://raw"]},
                "aws": {"region": "eu-west-1"},
                "table": {"catalog": kind, "uri": found.url, "warehouse": warehouse, "name": "lake.events"},
            }
        )
        with pytest.raises(AccessError, match="not allowed"):
            table_catalog(App(settings)).create(OWNER, version(1))
    [config, *_] = found.asked
    assert config[0] == "GET"
    assert "warehouse=" in config[1]
    [(path, created)] = [(path, body) for method, path, body in found.asked if method == "POST"]
    assert path.endswith("/namespaces/lake/tables")
    assert (created["name"], created["stage-create"], created.get("location")) == ("events", False, location)
    assert all(f"/eu-west-1/{kind}/aws4_request" in each for each in found.signed)
    assert all(each.startswith("AWS4-HMAC-SHA256 Credential=testing/") for each in found.signed)
