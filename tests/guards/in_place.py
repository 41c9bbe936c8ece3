"""No reader sees a file in place before a commit names it, and only orphans are deleted."""

from tests.guards.guard import Guard

_JOB = "tests/unit/job/test_in_place.py"
_S3 = "tests/contract/test_s3_writer.py"

IN_PLACE = (
    Guard(
        "a file in place that a commit names is no orphan",
        "ledger/table/orphans.py",
        "return Fate.NAMED if canonical(uri) in named else Fate.ORPHANED",
        "return Fate.ORPHANED",
        (_JOB + "::test_nothing_is_copied", _JOB + "::test_orphans_are_deleted_after_a_day"),
    ),
    Guard(
        "a file in place is judged by the outcome of its own generation",
        "ledger/table/orphans.py",
        "named = self._named(key, generation)",
        "named = self._named(key, 1)",
        (_JOB + "::test_the_fate_of_a_file",),
    ),
    Guard(
        "nothing in place is deleted before its manifest is decided",
        "upkeep/retention.py",
        'return "" if fate is Fate.ORPHANED else fate.value',
        'return ""',
        (_JOB + "::test_orphans_are_deleted_after_a_day",),
    ),
    Guard(
        "orphans in the output stay for a day",
        "upkeep/cleaner.py",
        "                ORPHAN_AGE_SECONDS,\n                partial(why_keep_in_place,",
        "                0.0,\n                partial(why_keep_in_place,",
        (_JOB + "::test_orphans_are_deleted_after_a_day",),
    ),
    Guard(
        "a manifest that is done leaves no orphans",
        "job/steps/publication.py",
        "if self.table is not None and all(file.is_in_place for file in _rows(outcome)):",
        "if False:",
        (_JOB + "::test_a_death_at_every_step",),
    ),
    Guard(
        "a commit whose file in place is gone is not published",
        "job/steps/publication.py",
        "        return published is not None and published.size_bytes == file.size_bytes\n",
        "        return published is not None or file.is_in_place\n",
        (_JOB + "::test_a_file_that_a_stranger_deletes_before_it_is_published",),
    ),
    Guard(
        "a failed attempt deletes what it wrote in place",
        "job/steps/staging.py",
        "generation)] if in_place else []",
        "generation)] if False else []",
        (_JOB + "::test_a_failed_attempt_deletes_what_it_wrote",),
    ),
    Guard(
        "a rebuild names what it wrote in place where it is",
        "ops/rebuild/successor.py",
        "        if file.is_in_place:\n            return file.final\n",
        "",
        (_JOB + "::test_a_rebuild_writes_in_place_again",),
    ),
    Guard(
        "a sample is no file of the output",
        "engines/native/engine.py",
        "if request.place and not folder else None",
        "if request.place else None",
        (_JOB + "::test_the_native_engine_samples_in_staging",),
    ),
    Guard(
        "cleaning goes on where orphans may not be deleted",
        "upkeep/cleaner.py",
        "                if expiry.may_be_denied and isinstance(exc, AccessError):\n",
        "                if False:\n",
        (_JOB + "::test_what_the_job_may_not_delete_holds_up_nothing",),
    ),
    Guard(
        "forgetting deletes orphans",
        "ops/forget/forgetter.py",
        "if rebuilder.publisher.table is not None:",
        "if False:",
        (_JOB + "::test_forgetting_in_place",),
    ),
    Guard(
        "nothing is written in place where readers list folders",
        "settings/settings.py",
        'if output.get("table", "none") == "none":',
        "if False:",
        ("tests/unit/settings/test_publish.py",),
    ),
    Guard(
        "a new object on S3 never replaces another one",
        "adapters/aws/s3/multipart.py",
        '{"IfNoneMatch": "*"} if only_new else {}',
        "{}",
        (_S3 + "::test_a_new_object_is_not_taken_for_one_of_another_writer",),
    ),
    Guard(
        "a writer knows its own object from that of another",
        "adapters/aws/s3/multipart.py",
        'return bool(found["Metadata"].get(_WRITER) == self._marked["Metadata"][_WRITER])',
        "return True",
        (_S3 + "::test_a_new_object_is_not_taken_for_one_of_another_writer",),
    ),
    Guard(
        "a writer whose last answer was lost knows its object",
        "adapters/aws/s3/multipart.py",
        "            if not self._is_there():\n                raise\n",
        "            raise\n",
        (_S3 + "::test_a_new_object_whose_answer_was_lost_is_there",),
    ),
    Guard(
        "a file of a partition in place takes no place of another",
        "engines/rows_place.py",
        "        elif not store.create(uri, data):\n",
        "        elif store.put(uri, data) is not None:\n",
        ("tests/unit/engines/test_partitioned_engine.py::test_a_file_in_place_takes_no_place_of_another",),
    ),
)
