"""The content of one request to S3: pieces that are sent as they came, and not copied into one."""

from base64 import b64encode
from bisect import bisect_right
from io import SEEK_CUR, SEEK_END, SEEK_SET
from typing import Any

from zlib_ng.zlib_ng import crc32

_KEPT_BYTES = 64 * 1024
"""A piece that is shorter is copied, beside others: many short ones would take far more memory than their bytes."""


class Part:
    """A file of pieces. Its length is that of all of them."""

    def __init__(self) -> None:
        self._pieces: list[memoryview] = []
        self._starts: list[int] = []
        self._short = bytearray()  # copies that are no piece yet
        self._length = 0
        self._position = 0

    def __len__(self) -> int:
        return self._length

    def add(self, piece: memoryview) -> None:
        """Append bytes. They are not copied if they are many, cannot change, and most of what is held with them."""
        if len(piece) >= _KEPT_BYTES and isinstance(piece.obj, bytes) and 2 * len(piece) >= len(piece.obj):
            self._end_short()
            self._append(piece)
        else:
            self._short += piece
        self._length += len(piece)

    def crc32(self) -> int:
        """The checksum of all bytes."""
        self._end_short()
        checksum = 0
        for piece in self._pieces:
            checksum = crc32(piece, checksum)
        return checksum

    def tell(self) -> int:
        """Where the next byte is read."""
        return self._position

    def seek(self, offset: int, whence: int = SEEK_SET) -> int:
        """Go to another byte, as in any file; where that is."""
        self._position = max(0, offset + {SEEK_SET: 0, SEEK_CUR: self._position, SEEK_END: self._length}[whence])
        return self._position

    def read(self, size: int = -1) -> bytes | memoryview:
        """Up to so many bytes, or fewer where a piece ends: a view of it. All that are left if no size is given."""
        if size < 0:
            return b"".join(iter(lambda: self.read(self._length or 1), b""))
        self._end_short()
        if self._position >= self._length:
            return b""
        index = bisect_right(self._starts, self._position) - 1
        begin = self._position - self._starts[index]
        found = self._pieces[index][begin : begin + size]
        self._position += len(found)
        return found

    def _end_short(self) -> None:
        if self._short:
            self._append(memoryview(self._short))
            self._short = bytearray()

    def _append(self, piece: memoryview) -> None:
        self._starts.append(self._starts[-1] + len(self._pieces[-1]) if self._pieces else 0)
        self._pieces.append(piece)


def send_checksum_first(params: dict[str, Any], **_: object) -> None:
    """Put the checksum of a `Part` into a header of its request: a handler of botocore's event `before-call`.

    botocore would compute it by zlib, which takes eight times as long, and send it behind the body, in chunks, over
    HTTPS. What it has been told of the checksum stays, so that it signs the same [botocore.httpchecksum].
    """
    told = params["context"].get("checksum", {}).get("request_algorithm")
    body = params["body"]
    if isinstance(body, Part) and isinstance(told, dict) and told["algorithm"] == "crc32":
        told["in"] = "header"
        params["headers"][told["name"]] = b64encode(body.crc32().to_bytes(4, "big")).decode()
