"""A read that goes past the client tells the bytes that were asked for, or nothing."""

from tests.guards.guard import Guard

_TESTS = "tests/contract/test_direct_reads.py"
_MODULE = "adapters/aws/s3/direct_reads.py"

DIRECT_READS = (
    Guard(
        "a direct read takes no other bytes for those of the object",
        _MODULE,
        "content if is_whole and matches_checksums(answer.headers, content) else None",
        "content if is_whole else None",
        (_TESTS + "::test_anything_but_a_sound_answer_is_left_to_the_client",),
    ),
    Guard(
        "a direct read takes no other length for that of the answer",
        _MODULE,
        "content if is_whole and matches_checksums(answer.headers, content) else None",
        "content if matches_checksums(answer.headers, content) else None",
        (_TESTS + "::test_anything_but_a_sound_answer_is_left_to_the_client",),
    ),
    Guard(
        "a direct read takes no whole object for a range",
        _MODULE,
        "if answer.status_code not in (_PARTIAL, _NOT_SATISFIABLE):",
        "if answer.status_code not in (200, _PARTIAL, _NOT_SATISFIABLE):",
        (_TESTS + "::test_anything_but_a_sound_answer_is_left_to_the_client",),
    ),
    Guard(
        "a direct read takes no error for the end of an object",
        _MODULE,
        'b"" if _BEHIND_THE_END in content else None',
        'b""',
        (_TESTS + "::test_anything_but_a_sound_answer_is_left_to_the_client",),
    ),
    Guard(
        "a direct read is of the bucket that was read before, by its own signature",
        _MODULE,
        "(request, request_signer) if signature_version == _VERSION else None",
        "(request, request_signer)",
        (_TESTS + "::test_a_bucket_with_other_signatures_is_left_to_the_client",),
    ),
    Guard(
        "each thread learns from its own request",
        _MODULE,
        "self._of_thread = local()",
        'self._of_thread: Any = type("Shared", (), {})()',
        (_TESTS + "::test_threads_learn_each_from_its_own_request",),
    ),
    Guard(
        "a direct read that failed is followed by reads of the client",
        _MODULE,
        "                self._client_reads_left[bucket] = CLIENT_READS_AFTER_FAILURE\n",
        "",
        (_TESTS + "::test_trouble_that_lasts_is_met_by_the_client_alone",),
    ),
)
