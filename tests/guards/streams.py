"""What keeps several streams apart, and lets none starve."""

from tests.guards.guard import Guard

_ROUTING = "tests/unit/manifests/test_routing.py"
_SLOTS = "tests/unit/job/test_shared_slots.py"
_JOB = "tests/unit/job/test_streams_job.py"
_THREADS = "tests/unit/adapters/test_fair_threads.py"

STREAMS = (
    Guard(
        "the fate of an id is known to the ledger of its own stream",
        "manifests/claiming.py",
        "        return self.neighbour(stream), plain\n",
        "        return self, holder\n",
        (_ROUTING + "::test_a_prefix_that_moves_doubles_and_loses_nothing",),
    ),
    Guard(
        "a claim from before there were streams is that of no stream",
        "adapters/stream_claims.py",
        'kept if ":" in kept else of_stream("", kept)',
        "kept",
        (_ROUTING + "::test_what_was_claimed_before_there_were_streams_stays_claimed",),
    ),
    Guard(
        "a plan leaves the files of other streams",
        "manifests/listing_planning.py",
        '        return "other_stream" if reason is None and self.is_of_other_stream(uri) else reason\n',
        "        return reason\n",
        (_ROUTING + "::test_a_plan_leaves_the_files_of_other_streams",),
    ),
    Guard(
        "an error of one stream fails its messages only",
        "manifests/building/routing.py",
        "        except CompactorError as exc:  # the other streams need not wait until a person has acted\n",
        "        except ZeroDivisionError as exc:\n",
        (_ROUTING + "::test_trouble_of_one_stream_fails_its_messages_only",),
    ),
    Guard(
        "the stream whose clock is behind begins next",
        "job/delivery/shared_slots.py",
        "key=lambda each: max(each.clock, self._clock))",
        "key=lambda each: 0)",
        (_SLOTS,),
    ),
    Guard(
        "a stream without work saves nothing up",
        "job/delivery/shared_slots.py",
        "        start = max(share.clock, self._clock)\n",
        "        start = share.clock\n",
        (_SLOTS + "::test_a_stream_without_work_lends_its_share_and_saves_nothing",),
    ),
    Guard(
        "nothing begins beside a manifest that has the job for itself",
        "job/delivery/shared_slots.py",
        "and not self._alone and self._begin_one()",
        "and self._begin_one()",
        (_SLOTS + "::test_one_that_needs_the_job_for_itself_gets_it_in_the_end",),
    ),
    Guard(
        "an error of one stream ends no other",
        "job/streams_job.py",
        "        except Exception as exc:  # noqa: BLE001 - no error of one stream may stop the others\n",
        "        except ZeroDivisionError as exc:\n",
        (_JOB + "::test_a_stream_that_fails_holds_up_no_other",),
    ),
    Guard(
        "a free thread takes a task of the stream that has the fewest running",
        "adapters/local/native/fair_threads.py",
        "return self._of_streams[owner[0]], self._turns[owner[0]], self._running[owner]\n",
        "return 0, self._turns[owner[0]], self._running[owner]\n",
        (_THREADS + "::test_a_stream_that_has_a_thread_leaves_the_next_one_to_others",),
    ),
    Guard(
        "a stream that comes late waits for no other one's queue",
        "adapters/local/native/fair_threads.py",
        "self._of_streams[owner[0]], self._turns[owner[0]], self._running[owner]\n",
        "self._of_streams[owner[0]], 0, self._running[owner]\n",
        (_THREADS + "::test_a_stream_waits_for_one_task_of_a_flood",),
    ),
)
