"""Crash points: durable steps at which tests kill the process."""

from collections.abc import Callable
from enum import StrEnum
from typing import Any


class CrashPoint(StrEnum):
    """A point in a manifest's life, in order."""

    ACCEPTED = "accepted"  # the id is bound to this manifest for good
    OPENED = "opened"  # it is in the index of open manifests
    ATTEMPTED = "attempted"  # this attempt is recorded
    INSPECTED = "inspected"  # every line was read; rejected lines are staged
    CONVERTED = "converted"  # the Parquet files are staged
    VERIFIED = "verified"  # the row counts in their footers were verified
    DECIDED = "decided"  # the outcome is recorded: the commit point
    PUBLISHED_ONE = "published_one"  # one staged file is in its final place
    PUBLISHED = "published"  # all staged files are in their final places
    DONE = "done"  # done is recorded
    UNSTAGED = "unstaged"  # the staging folder is deleted
    ARCHIVED = "archived"  # the manifest is out of the watched prefix
    CLOSED = "closed"  # it is no longer in the index of open manifests


class RedriveCrashPoint(StrEnum):
    """A point in a redrive, in order."""

    LINES_WRITTEN = "lines_written"  # rejected lines are input files that no manifest names yet
    CLAIMED = "claimed"  # the files are claimed for the new manifest
    RECORDED = "recorded"  # the redrive is recorded and takes effect
    DELIVERED = "delivered"  # its manifest is in the watched prefix


class ChangeCrashPoint(StrEnum):
    """A point in a deleting change, in order."""

    BEGUN = "begun"  # the intention is recorded; the next run carries it out
    RECORDED = "recorded"  # the change is recorded and takes effect
    DELETED = "deleted"  # its data is deleted
    FINISHED = "finished"  # the intention is deleted


class PlanCrashPoint(StrEnum):
    """A point in planning, building or sealing a manifest."""

    PART_BOUND = "part_bound"  # a part to seal is bound and can no longer be revoked
    CLAIMED = "claimed"  # files, or parts, are claimed for a manifest or a part that is not written yet
    PLANNED = "planned"  # the manifest is written
    PENDING = "pending"  # the files wait in a pending part
    BOUND = "bound"  # it can no longer be revoked: the files are safe
    CLEARED = "cleared"  # the parts of a manifest are deleted


class RotationCrashPoint(StrEnum):
    """A point in the move of a run's stream to a new checkpoint, in order."""

    STOPPED = "stopped"  # the old stream has ended
    DROPPED = "dropped"  # the old checkpoint is deleted
    STARTED = "started"  # the new stream has started


OnCrashPoint = Callable[[Any, str], None]
"""Called with a point, and what has just reached it: a manifest or part by its id, a change by its date, or a run."""


def ignore_crash_point(*_reached: object) -> None:
    """Do nothing: the default outside of tests."""
