"""What lets the stream move to a new checkpoint without a gap, and leaves it where it is if it cannot."""

from tests.guards.guard import Guard

_ROTATING = "tests/unit/job/test_rotating_source.py"
_MODULE = "job/rotating_source.py"

ROTATION = (
    Guard(
        "what the stream before delivered is not delivered again from a listing of that time",
        _MODULE,
        "            others += [each.earlier for each in streams if each is not None]\n",
        "",
        (_ROTATING + "::test_what_the_new_stream_listed_before_the_old_one_delivered_it",),
    ),
    Guard(
        "the new stream takes over only once it has come as far as the old one",
        _MODULE,
        "if not (new.has_news or new.source.is_idle()):",
        "if False:",
        (_ROTATING + "::test_the_stream_moves_to_a_new_checkpoint",),
    ),
    Guard(
        "of two streams beside each other the job gets each manifest once",
        _MODULE,
        "if not any(canonical(uri) in names for names in others)]",
        "]",
        (_ROTATING + "::test_the_stream_moves_to_a_new_checkpoint",),
    ),
    Guard(
        "a stream that leaves delivers nothing more, so that it comes to an end",
        _MODULE,
        "            if stream.is_leaving:  # the one that has its place delivers this\n                return\n",
        "",
        (_ROTATING + "::test_the_old_stream_is_stopped_between_two_batches",),
    ),
    Guard(
        "the old stream is not stopped while a batch of it waits for room",
        _MODULE,
        "        if old.delivering:  # until the next call; it delivers no further one\n            return\n",
        "",
        (_ROTATING + "::test_the_old_stream_is_stopped_between_two_batches",),
    ),
    Guard(
        "manifests that stay in the prefix bring no rotation",
        _MODULE,
        "        if 2 * left > old.entries:\n",
        "        if False:\n",
        (_ROTATING + "::test_manifests_that_stay_bring_no_move",),
    ),
    Guard(
        "a rotation that fails leaves the old stream",
        _MODULE,
        "        except Exception as exc:  # noqa: BLE001 - whatever it is, the old stream goes on\n",
        "        except ZeroDivisionError as exc:\n",
        (_ROTATING + "::test_a_stream_that_cannot_start_leaves_the_old_one",),
    ),
    Guard(
        "a rotation that failed is tried again after a pause",
        _MODULE,
        "stream.entries >= self._check_at and self.monotonic() >= self._resting_until",
        "stream.entries >= self._check_at",
        (_ROTATING + "::test_a_stream_that_cannot_start_leaves_the_old_one",),
    ),
    Guard(
        "a new stream that is silent is given up",
        _MODULE,
        "if silent_seconds >= SILENT_SECONDS and not new.delivering:",
        "if False:",
        (_ROTATING + "::test_a_new_stream_that_fails_or_is_silent_is_given_up",),
    ),
    Guard(
        "an error of a batch ends the streams, so that its manifests come again",
        _MODULE,
        "        if self._error is not None:  # of a stream that is not waited for\n            raise self._error\n",
        "",
        (_ROTATING + "::test_an_error_of_a_batch_ends_the_stream",),
    ),
    Guard(
        "no rotation begins while the checkpoint of an earlier one is still there",
        _MODULE,
        "        self.checkpoints.drop_ended()  # a rotation leaves no more than one checkpoint behind\n",
        "",
        (_ROTATING + "::test_checkpoints_that_cannot_be_deleted_do_not_pile_up",),
    ),
    Guard(
        "a run that is to end does not rotate",
        _MODULE,
        "if not (ended or self._once):",
        "if not ended:",
        (_ROTATING + "::test_a_run_that_is_to_end_does_not_rotate",),
    ),
    Guard(
        "Spark's stream is idle only after its first listing",
        "adapters/spark/stream.py",
        "return has_listed and not status",
        "return not status",
        ("tests/unit/adapters/test_spark_stream.py::test_a_stream_is_idle_after_its_first_listing",),
    ),
)
