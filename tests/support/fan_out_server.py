"""A server of enhanced fan-out over HTTP, on a stream in memory: it sends events in the framing of AWS.

The server from npm leaves out the first event of a subscription, without which boto3 reads none.
"""

import base64
import json
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from types import TracebackType
from typing import Any, Self
from zlib import crc32

from botocore.exceptions import ClientError

from tests.support.memory_kinesis import MemoryKinesis

_EVENT_PAUSE_SECONDS = 0.02
_STRING = 7  # the type of a header


class FanOutServer:
    """Serves the calls of a consumer. Use it as a context manager."""

    def __init__(self, kinesis: MemoryKinesis) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(kinesis))
        self._server.daemon_threads = True
        self._thread = Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _handler(kinesis: MemoryKinesis) -> type[BaseHTTPRequestHandler]:
    calls = {
        "DescribeStreamSummary": kinesis.describe_stream_summary,
        "DescribeStreamConsumer": kinesis.describe_stream_consumer,
        "ListShards": kinesis.list_shards,
        "SubscribeToShard": kinesis.subscribe_to_shard,
    }

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            operation = self.headers["X-Amz-Target"].rpartition(".")[2]
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            try:
                answer = calls[operation](**asked)
            except ClientError as exc:
                self._send(400, {"__type": exc.response["Error"]["Code"], "message": "as Kinesis does"})
                return
            if operation == "SubscribeToShard":
                self._send_events(answer["EventStream"])
            else:
                self._send(200, answer)

        def _send(self, status: int, answer: Mapping[str, Any]) -> None:
            body = _json(answer)
            self.send_response(status)
            self.send_header("Content-Type", "application/x-amz-json-1.1")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def _send_events(self, events: Any) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "application/vnd.amazon.eventstream")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.close_connection = True
            try:
                self._send_chunk(_frame("initial-response", b"{}"))
                for each in events:
                    self._send_chunk(_frame("SubscribeToShardEvent", _json(each["SubscribeToShardEvent"])))
                    time.sleep(_EVENT_PAUSE_SECONDS)
                self._send_chunk(b"")
            except OSError:  # the consumer has enough
                return

        def _send_chunk(self, data: bytes) -> None:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            self.wfile.flush()

        def log_message(self, *words: object) -> None:
            """Print nothing."""

    return Handler


def _json(answer: Mapping[str, Any]) -> bytes:
    def plain(value: Any) -> Any:
        return base64.b64encode(value).decode() if isinstance(value, bytes) else value.timestamp()

    return json.dumps(answer, default=plain).encode()


def _frame(event: str, payload: bytes) -> bytes:
    named = {":event-type": event, ":content-type": "application/json", ":message-type": "event"}
    headers = b"".join(
        bytes([len(name)]) + name.encode() + bytes([_STRING]) + len(value).to_bytes(2) + value.encode()
        for name, value in named.items()
    )
    prelude = (len(headers) + len(payload) + 16).to_bytes(4) + len(headers).to_bytes(4)
    framed = prelude + crc32(prelude).to_bytes(4) + headers + payload
    return framed + crc32(framed).to_bytes(4)
