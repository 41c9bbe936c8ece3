"""An answer of S3 counts only if it is whole: a read that goes past the client, a copy, an upload."""

from tests.guards.guard import Guard

_TESTS = "tests/contract/test_direct_reads.py"
_SOUND = _TESTS + "::test_anything_but_a_sound_answer_is_left_to_the_client"
_MODULE = "adapters/aws/s3/direct_reads.py"
_CONNECTIONS = "adapters/aws/s3/connections.py"

DIRECT_READS = (
    Guard(
        "a direct read takes no other bytes for those of the object",
        _MODULE,
        "return is_all and matches_checksums(answer.headers, content)",
        "return is_all",
        (_SOUND,),
    ),
    Guard(
        "a direct read takes no other range for that asked for",
        _MODULE,
        "return is_all and matches_checksums(answer.headers, content)",
        "return matches_checksums(answer.headers, content)",
        (_SOUND,),
    ),
    Guard(
        "a direct read takes no chunks for what they carry",
        _CONNECTIONS,
        ' or "transfer-encoding" in headers',
        "",
        (_SOUND,),
    ),
    Guard(
        "no answer is read that belongs to another request",
        _CONNECTIONS,
        "if answer.content is not None and answer",
        "if answer",
        (_TESTS + "::test_nothing_unread_is_left_to_the_next_answer",),
    ),
    Guard(
        "an answer without a length is no empty object",
        "adapters/aws/s3/store.py",
        "                    _check_length(uri, answer)\n",
        "",
        (_TESTS + "::test_an_answer_without_a_length_is_no_empty_object",),
    ),
    Guard(
        "an answer without a page is no empty listing",
        "adapters/aws/s3/store.py",
        'if "IsTruncated" not in page:',
        "if False:",
        (_TESTS + "::test_an_answer_without_a_length_is_no_empty_object",),
    ),
    Guard(
        "a copy counts once it is made",
        "adapters/aws/s3/store.py",
        'is_done = "ETag" in answer.get("CopyObjectResult", ())',
        "is_done = True",
        ("tests/contract/test_s3_store.py::test_a_copy_counts_once_s3_tells_its_etag",),
    ),
    Guard(
        "a copy in parts counts once it is there",
        "adapters/aws/s3/store.py",
        "is_done = made is not None and made.size_bytes == found.size_bytes",
        "is_done = True",
        ("tests/contract/test_s3_store.py::test_a_copy_in_parts_counts_once_it_is_there",),
    ),
    Guard(
        "an upload counts once its object is made",
        "adapters/aws/s3/multipart.py",
        'if "ETag" not in done:',
        "if False:",
        ("tests/contract/test_s3_writer.py::test_an_upload_counts_once_s3_tells_its_etag",),
    ),
    Guard(
        "the bytes of another range are none of those that were asked for",
        "adapters/aws/s3/store.py",
        "    if not is_asked:\n",
        "    if False:\n",
        ("tests/contract/test_s3_store.py::test_another_range_than_was_asked_for_is_none",),
    ),
    Guard(
        "connections of a tracer refuse cut heads, too",
        "adapters/aws/whole_heads.py",
        "all(map(_extends_botocore, found.values()))",
        "found['http'] is AWSHTTPConnectionPool",
        ("tests/contract/test_whole_heads.py::test_classes_of_a_tracer_that_extend_those_of_botocore",),
    ),
    Guard(
        "an answer that tells no length may end anywhere, whatever made its connection",
        "adapters/aws/whole_heads.py",
        "    if has_body and not told &",
        "    if False and told &",
        ("tests/contract/test_whole_heads.py::test_other_classes_than_those_of_botocore",),
    ),
    Guard(
        "an answer that ends within its head is none",
        "adapters/aws/clients.py",
        "    require_whole_heads(client)\n",
        "",
        ("tests/contract/test_whole_heads.py::test_an_answer_may_end_nowhere_in_its_head",),
    ),
    Guard(
        "an answer that came early is not that of the next request",
        "adapters/aws/whole_heads.py",
        "            self.response_class = HTTPResponse\n",
        "            pass\n",
        ("tests/contract/test_whole_heads.py::test_an_answer_before_the_body_is_not_that_of_the_next_request",),
    ),
    Guard(
        "an answer to a request that waits is none if it ends within its head",
        "adapters/aws/whole_heads.py",
        "            if not line:\n",
        "            if False:\n",
        ("tests/contract/test_whole_heads.py::test_a_request_that_waits_to_go_on_does_not_wait_for_ever",),
    ),
    Guard(
        "a direct read goes past no proxy",
        _CONNECTIONS,
        ".proxy_url_for(url) is None",
        ".proxy_url_for(url) is not self",
        (_TESTS + "::test_what_goes_through_a_proxy_is_left_to_the_client",),
    ),
    Guard(
        "no text of a manifest adds a header to a request",
        _CONNECTIONS,
        "if not all(line.isprintable() for line in lines):",
        "if False:",
        (_TESTS + "::test_no_header_ends_early",),
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
        '            self._client_reads_left[parameters["Bucket"]] = CLIENT_READS_AFTER_FAILURE\n',
        "",
        (_TESTS + "::test_trouble_that_lasts_is_met_by_the_client_alone",),
    ),
)
