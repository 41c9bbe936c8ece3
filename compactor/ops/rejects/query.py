"""Which rejected lines are asked for. No I/O."""

from dataclasses import dataclass

from compactor.core.layout import canonical


@dataclass(frozen=True, slots=True)
class Query:
    """Which rejected lines are asked for: all, unless a field says otherwise.

    Attributes:
        reason: Only lines that were rejected for this reason.
        file: Only lines of this file: its URI, or the end of its URI from the beginning of a name.
        date: Only manifests of this date.
    """

    reason: str | None = None
    file: str | None = None
    date: str | None = None

    def takes(self, source_uri: str, reason: str) -> bool:
        return self.takes_reason(reason) and self.takes_file(source_uri)

    def takes_reason(self, reason: str) -> bool:
        return self.reason is None or self.reason == reason

    def takes_file(self, source_uri: str) -> bool:
        if self.file is None:
            return True
        uri, wanted = canonical(source_uri), canonical(self.file)
        return uri == wanted or (not wanted.startswith(("/", "s3://")) and uri.endswith(f"/{wanted}"))
