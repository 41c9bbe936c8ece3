"""What every splitter does first with the decoded bytes of a file: it bounds their number, and leaves out the mark."""

from compactor.core.errors import FileError
from compactor.ndjson.lines import Limits

BOM = b"\xef\xbb\xbf"
"""The byte order mark of UTF-8, with which a file may begin."""


class DecodedPieces:
    """The pieces of one file, one after the other.

    Attributes:
        decoded_bytes: The length of all of them, the mark included.
        bom_bytes: The length of the byte order mark; 0 if the file has none, or it is not known yet.
    """

    def __init__(self, limits: Limits) -> None:
        self.decoded_bytes = 0
        self.bom_bytes = 0
        self._limits = limits
        # The first bytes, until it is known whether they are a mark; None from then on.
        self._head: bytes | None = b""

    def without_bom(self, piece: bytes) -> bytes:
        """Count the next piece; returns what is known to be none of the mark, empty as long as that is not known.

        Raises:
            FileError: `too_large`: more decoded bytes than `max_decompressed_bytes`.
        """
        self.decoded_bytes += len(piece)
        limit = self._limits.max_decompressed_bytes
        if self.decoded_bytes > limit:
            found = f"at least {self.decoded_bytes} bytes after decoding"
            raise FileError("too_large", f"{found}, expected at most max_decompressed_bytes = {limit}")
        if self._head is None:
            return piece
        piece = self._head + piece
        if len(piece) < len(BOM) and BOM.startswith(piece):
            self._head = piece
            return b""
        self._head = None
        self.bom_bytes = len(BOM) if piece.startswith(BOM) else 0
        return piece[self.bom_bytes :]

    def rest(self) -> bytes:
        """What is held back at the end of the file: the beginning of a mark that is none."""
        return self._head or b""
