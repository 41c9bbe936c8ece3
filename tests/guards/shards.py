"""Jobs side by side leave each other their shares, and take over what is left of those that are gone."""

from tests.guards.guard import Guard

_SHARDS = "tests/unit/job/test_shards.py"

SHARDS = (
    Guard(
        "a job begins no manifest of another shard that the stream shows it",
        "job/service.py",
        "self.runner.begin(list(filter(self.share.is_mine, uris)), is_stopping",
        "self.runner.begin(list(uris), is_stopping",
        (_SHARDS + "::test_the_stream_shows_a_job_what_is_of_others",),
    ),
    Guard(
        "a manifest that another shard has taken meanwhile is not begun when its turn comes",
        "job/batches.py",
        "if not self._share.is_mine(work.delivery.uri):",
        "if False:",
        (_SHARDS + "::test_what_another_shard_has_taken_meanwhile_is_left_to_it",),
    ),
    Guard(
        "what a living run works on is left to it",
        "job/steps/compaction.py",
        "if self._is_elsewhere(found):",
        "if False:",
        (_SHARDS + "::test_what_a_living_run_works_on_is_left_to_it",),
    ),
    Guard(
        "an attempt that a clock ahead has dated is not left to its run",
        "job/steps/compaction.py",
        "abs(age.total_seconds()) < LEFT_SECONDS",
        "age.total_seconds() < LEFT_SECONDS",
        (_SHARDS + "::test_an_attempt_of_a_clock_that_was_ahead_is_not_left_to_its_run_for_ever",),
    ),
    Guard(
        "manifests of a shard that is gone are listed again",
        "job/service.py",
        "            self._resume()\n            self._listed = deque(self._own_waiting())\n",
        "            self._resume()\n",
        (_SHARDS + "::test_what_is_taken_over_is_begun_at_once",),
    ),
    Guard(
        "a change of the shares that was taken back counts, too",
        "job/shards.py",
        "            self._has_changed = True\n",
        "            self._has_changed = not self._has_changed\n",
        (_SHARDS + "::test_a_change_that_was_taken_back_counts",),
    ),
    Guard(
        "a job begins nothing before all others have seen it",
        "job/shards.py",
        "and now - self._member_since >= JOIN_SECONDS",
        "",
        (_SHARDS + "::test_shards_share_what_is_there",),
    ),
    Guard(
        "a job that was paused takes nothing before its heartbeat is seen again",
        "job/shards.py",
        "        is_member = members.get(self.shard.number) == self.run_id\n",
        "        is_member = True\n",
        (_SHARDS + "::test_a_job_that_wakes_takes_nothing_until_it_is_known_again",),
    ),
    Guard(
        "a shard that was not seen yet is waited for",
        "job/shards.py",
        "frozenset(members.keys() | awaited)",
        "frozenset(members.keys())",
        (_SHARDS + "::test_a_shard_that_was_not_seen_yet_is_waited_for",),
    ),
    Guard(
        "shards wait until a run without a shard has ended",
        "job/shards.py",
        "has_joined and not works_alone(living)",
        "has_joined",
        (_SHARDS + "::test_a_job_without_a_shard_takes_all",),
    ),
    Guard(
        "the check of one shard's job sees the heartbeats of no other",
        "ledger/heartbeat.py",
        "(shard_number(beat.shard) or 1) == self.shard.number",
        "True",
        ("tests/unit/control/test_shards_control.py::test_each_shard_has_a_job_that_is_kept_running",),
    ),
)
