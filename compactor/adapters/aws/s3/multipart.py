"""Writes objects to S3 as their bytes arrive, in a fixed amount of memory."""

from base64 import b64encode
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from io import BytesIO
from typing import Any, Self
from uuid import uuid4

from zlib_ng.zlib_ng import crc32

from compactor.adapters.aws.errors import answered_code, translated
from compactor.core.errors import CompactorError, ObjectNotFound, StoreUnavailable


def send_checksum_first(params: dict[str, Any], **_: object) -> None:
    """Put the checksum of an in-memory body into a request header: a handler for botocore's event `before-call`.

    botocore would compute it with zlib, which takes eight times as long, and over HTTPS send it after the body, in
    chunks. The other checksum parameters stay, so that botocore signs the same [botocore.httpchecksum].
    """
    checksum = params["context"].get("checksum", {}).get("request_algorithm")
    body = params["body"]
    if isinstance(body, BytesIO) and isinstance(checksum, dict) and checksum["algorithm"] == "crc32":
        checksum["in"] = "header"
        params["headers"][checksum["name"]] = b64encode(crc32(body.getvalue()).to_bytes(4, "big")).decode()


_PART_BYTES = 16 * 1024 * 1024  # an object has at most 10,000 [S3 API], so it can have 156 GiB
_PARTS_UNDER_WAY = 2
# Set at the start of an upload, with every part and at the end: S3 refuses a part checksum that was not announced.
# Clients may add such a checksum to parts themselves, but do not announce it.
_CHECKSUM = {"ChecksumAlgorithm": "CRC32"}
_WRITER = "compactor-writer"  # in the metadata of a new object: who wrote it
_MET = {"PreconditionFailed", "NoSuchUpload", "ConditionalRequestConflict"}


class S3Writer:
    """A new object: sent in one request if it fits into one part, else in parts while more bytes arrive.

    It holds at most three parts, 48 MiB: one being filled, and two being sent. The client retries transient errors
    itself. Errors identify the object by its `uri`.

    With `only_new`, S3 refuses the object if one exists. If a response was lost, that may be this writer's object,
    which it recognises by its metadata.
    """

    def __init__(self, client: Any, uri: str, bucket: str, key: str, *, only_new: bool = False) -> None:
        self._client = client
        self._uri = uri
        self._object = {"Bucket": bucket, "Key": key}
        # guard: a new object on S3 never replaces an existing one
        self._only_new: dict[str, Any] = {"IfNoneMatch": "*"} if only_new else {}
        self._marked: dict[str, Any] = {"Metadata": {_WRITER: uuid4().hex}} if only_new else {}
        # In turn: memory that is used again is there, and new memory takes as long as sending it.
        self._bodies = [BytesIO() for _ in range(_PARTS_UNDER_WAY + 1)]
        self._upload: dict[str, str] = {}
        self._threads = ThreadPoolExecutor(_PARTS_UNDER_WAY, thread_name_prefix="upload")
        self._parts: list[Future[dict[str, Any]]] = []
        self._has_hole = False
        self._is_aborted = False

    @property
    def _filling(self) -> BytesIO:
        """The part that is being filled. The one that had its body before was sent."""
        return self._bodies[len(self._parts) % len(self._bodies)]

    def write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            # Not as soon as it is full: the last part is sent at the end.
            if self._filling.tell() == _PART_BYTES:
                self._send_part()
            room = _PART_BYTES - self._filling.tell()
            self._filling.write(rest[:room])
            rest = rest[room:]

    def abort(self) -> None:
        self._is_aborted = True

    @contextmanager
    def block(self) -> Iterator[Self]:
        """A block at whose end the object is created, unless it raises or aborts."""
        with ExitStack() as abandoning:
            abandoning.callback(self._abandon)
            yield self
            if not self._is_aborted:
                self._finish()
                abandoning.pop_all()

    def _send_part(self) -> None:
        """Send the next part once fewer than the limit are being sent; raise an earlier part's error."""
        try:
            if not self._upload:
                with translated(self._uri):
                    begun = self._client.create_multipart_upload(**self._object, **self._marked, **_CHECKSUM)
                self._upload = {**self._object, "UploadId": begun["UploadId"]}
            if len(self._parts) >= _PARTS_UNDER_WAY:
                self._parts[-_PARTS_UNDER_WAY].result()
            self._filling.truncate()
            self._filling.seek(0)
            self._parts.append(self._threads.submit(self._send, len(self._parts) + 1, self._filling))
        except BaseException:
            self._has_hole = True
            raise
        self._filling.seek(0)

    def _send(self, number: int, body: BytesIO) -> dict[str, Any]:
        with translated(self._uri):
            answer = self._client.upload_part(**self._upload, **_CHECKSUM, PartNumber=number, Body=body)
        # Servers other than AWS may not support checksums.
        return {"PartNumber": number, **{name: answer[name] for name in ("ETag", "ChecksumCRC32") if name in answer}}

    def _finish(self) -> None:
        if self._has_hole:
            raise StoreUnavailable(f"{self._uri}: a part was not written, so the object was not created")
        if not self._upload:
            self._filling.seek(0)
            with self._only_if_new():
                self._client.put_object(**self._object, **self._only_new, **self._marked, Body=self._filling)
            return
        self._send_part()
        parts = {"Parts": [part.result() for part in self._parts]}
        with self._only_if_new():
            done = self._client.complete_multipart_upload(**self._upload, **self._only_new, MultipartUpload=parts)
            # guard: an upload counts only once its object exists
            if "ETag" not in done:  # S3 answers 200 before it assembles the parts [API reference]
                raise StoreUnavailable(f"{self._uri}: the response ended before the object was created")
        self._threads.shutdown()

    @contextmanager
    def _only_if_new(self) -> Iterator[None]:
        """Ignore the refusal of a new object if this writer itself created the existing one."""
        try:
            with translated(self._uri):
                yield
        except CompactorError as exc:
            if not self._only_new or answered_code(exc) not in _MET:
                raise
            if not self._is_there():  # guard: a writer recognises its object after a lost response
                raise

    def _is_there(self) -> bool:
        try:
            with translated(self._uri):
                found = self._client.head_object(**self._object)
        except ObjectNotFound:
            return False
        # guard: a writer tells its own object from another writer's
        return bool(found["Metadata"].get(_WRITER) == self._marked["Metadata"][_WRITER])

    def _abandon(self) -> None:
        """Delete the parts. If that fails, the bucket's lifecycle rule for unfinished uploads deletes them."""
        if self._upload:
            # Parts that arrive after the abort could remain.
            self._threads.shutdown(cancel_futures=True)
            with suppress(CompactorError), translated(self._uri):
                self._client.abort_multipart_upload(**self._upload)
