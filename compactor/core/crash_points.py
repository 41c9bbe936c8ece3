"""The steps of a manifest's life, in order. Each is durable before the next begins.

Whoever composes the service may be told of each step as it is reached; tests stop and kill the process there.
"""

from collections.abc import Callable
from enum import StrEnum


class CrashPoint(StrEnum):
    """A point after which the world is different."""

    CLAIMED = "claimed"  # files are claimed for a manifest that is not written yet
    PLANNED = "planned"  # that manifest is written
    ACCEPTED = "accepted"  # the id is tied to this manifest for good
    OPENED = "opened"  # the index of open manifests knows it
    ATTEMPTED = "attempted"  # this attempt is on record
    INSPECTED = "inspected"  # every line was read; what the engine sets aside is staged
    CONVERTED = "converted"  # the Parquet files are staged
    VERIFIED = "verified"  # their footers add up
    DECIDED = "decided"  # the outcome is on record: the commit point
    PUBLISHED_ONE = "published_one"  # one staged file is in its final place
    PUBLISHED = "published"  # all of them are
    DONE = "done"  # done is on record
    UNSTAGED = "unstaged"  # the staging folder is gone
    ARCHIVED = "archived"  # the manifest is out of the watched prefix
    CLOSED = "closed"  # the index of open manifests has forgotten it


class RedriveCrashPoint(StrEnum):
    """A point of a redrive after which the world is different."""

    LINES_WRITTEN = "lines_written"  # rejected lines are input files that nobody names yet
    CLAIMED = "claimed"  # the files are claimed for the new manifest
    RECORDED = "recorded"  # the redrive is on record: it takes effect
    DELIVERED = "delivered"  # its manifest is in the watched prefix


class BuildCrashPoint(StrEnum):
    """A point of building or sealing a manifest after which the world is different."""

    CLAIMED = "claimed"  # files are claimed for a manifest or a part that is not written yet
    BUILT = "built"  # the manifest is written
    PENDING = "pending"  # the files wait in a pending part
    BOUND = "bound"  # it cannot be revoked any more: the files are safe
    PART_BOUND = "part_bound"  # a part that is to be sealed cannot be revoked any more
    PARTS_CLAIMED = "parts_claimed"  # parts are claimed for a manifest that is not written yet
    SEALED = "sealed"  # that manifest is written
    CLEARED = "cleared"  # its parts are gone


OnBuildCrashPoint = Callable[[BuildCrashPoint, str], None]
"""Called with a step and the id of a manifest or part, right after that step was reached."""

OnRedriveCrashPoint = Callable[[RedriveCrashPoint, str], None]
"""Called with a step and the id of the new manifest, right after that step was reached."""

OnCrashPoint = Callable[[CrashPoint, str], None]
"""Called with a step and a manifest id, right after that step was reached."""


def ignore_crash_point(step: CrashPoint, manifest_id: str) -> None:
    """What to do on a step when nobody wants to know."""


def ignore_build_crash_point(step: BuildCrashPoint, manifest_id: str) -> None:
    """What to do on a step of building when nobody wants to know."""


def ignore_redrive_crash_point(step: RedriveCrashPoint, manifest_id: str) -> None:
    """What to do on a step of a redrive when nobody wants to know."""
