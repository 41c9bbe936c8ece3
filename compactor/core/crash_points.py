"""Crash points: durable steps at which tests kill the process."""

from collections.abc import Callable
from enum import StrEnum


class CrashPoint(StrEnum):
    """A point of a manifest's life, in order."""

    ACCEPTED = "accepted"  # the id is bound to this manifest for good
    OPENED = "opened"  # it is in the index of open manifests
    ATTEMPTED = "attempted"  # this attempt is on record
    INSPECTED = "inspected"  # every line was read; rejected lines are staged
    CONVERTED = "converted"  # the Parquet files are staged
    VERIFIED = "verified"  # the row counts in their footers were verified
    DECIDED = "decided"  # the outcome is on record: the commit point
    PUBLISHED_ONE = "published_one"  # one staged file is in its final place
    PUBLISHED = "published"  # all staged files are in their final places
    DONE = "done"  # done is on record
    UNSTAGED = "unstaged"  # the staging folder is gone
    ARCHIVED = "archived"  # the manifest is out of the watched prefix
    CLOSED = "closed"  # it is no longer in the index of open manifests


class RedriveCrashPoint(StrEnum):
    """A point of a redrive, in order."""

    LINES_WRITTEN = "lines_written"  # rejected lines are input files that no manifest names yet
    CLAIMED = "claimed"  # the files are claimed for the new manifest
    RECORDED = "recorded"  # the redrive is on record: it takes effect
    DELIVERED = "delivered"  # its manifest is in the watched prefix


class ChangeCrashPoint(StrEnum):
    """A point of a change that deletes, in order."""

    BEGUN = "begun"  # the intention is on record, and the next run carries it out
    RECORDED = "recorded"  # the change is on record: it takes effect
    DELETED = "deleted"  # what it takes is deleted
    FINISHED = "finished"  # the intention is deleted


class PlanCrashPoint(StrEnum):
    """A point of planning, building or sealing a manifest."""

    PART_BOUND = "part_bound"  # a part to seal is bound and cannot be revoked any more
    CLAIMED = "claimed"  # files, or parts, are claimed for a manifest or a part that is not written yet
    PLANNED = "planned"  # the manifest is written
    PENDING = "pending"  # the files wait in a pending part
    BOUND = "bound"  # it cannot be revoked any more: the files are safe
    CLEARED = "cleared"  # the parts of a manifest are deleted


class RotationCrashPoint(StrEnum):
    """A point of the move of a run's stream to a new checkpoint, in order."""

    STOPPED = "stopped"  # the old stream has ended
    DROPPED = "dropped"  # the old checkpoint is deleted
    STARTED = "started"  # the new stream has begun


OnPlanCrashPoint = Callable[[PlanCrashPoint, str], None]
"""Called with the id of a manifest or part right after it reached a point."""

OnChangeCrashPoint = Callable[[ChangeCrashPoint, str], None]
"""Called with the date of a change right after it reached a point."""

OnRedriveCrashPoint = Callable[[RedriveCrashPoint, str], None]
"""Called with the id of the new manifest right after the redrive reached a point."""

OnRotationCrashPoint = Callable[[RotationCrashPoint], None]
"""Called right after the move reached a point."""

OnCrashPoint = Callable[[CrashPoint | PlanCrashPoint, str], None]
"""Called with the id of a manifest right after it reached a point."""


def ignore_crash_point(*_reached: object) -> None:
    """Do nothing: the default outside of tests."""
