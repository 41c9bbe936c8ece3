"""Promises of lines of text that are read by a pattern: each is a record, a reject with its own bytes, or blank."""

import json
import re
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor.adapters.local.native.kernel import NativeGrok, expanded
from compactor.core.documents.changes import GrokRules
from compactor.core.documents.records import FileStatus
from compactor.core.errors import FileError, StagingError
from compactor.ndjson.grok import MAX_COSTLY_LINES, GrokSplitter, MatchingTime
from compactor.ndjson.inspection import Inspected, inspect_lines
from compactor.ndjson.kinds.formats import Formats
from compactor.ndjson.lines import Limits, Reject
from tests.support import extras

extras.NATIVE.need()

LIMITS = Limits(max_line_bytes=10_000, max_decompressed_bytes=1 << 30)
ACCESS = (
    b'192.0.2.7 - frank [21/Dec/2025:13:55:36 +0000] "GET /a?b=\\"c\\" HTTP/1.1" 200 2326 '
    b'"http://example.org/" "Mozilla/5.0 (X11; Linux)"'
)


def grok(pattern: str, *, max_steps: int = 50_000, **own: str) -> NativeGrok:
    regex, captures = expanded(pattern, own)
    return NativeGrok(GrokRules(regex=regex, keys=tuple(key for key, _ in captures), max_steps=max_steps))


def read(
    decoder: NativeGrok, pieces: Iterable[bytes], limits: Limits = LIMITS
) -> tuple[Inspected, list[dict[str, str]], list[Reject]]:
    """Inspect a file; what it has of records and rejects."""
    rejects: list[Reject] = []
    good: list[bytes] = []
    found = inspect_lines(pieces, limits, on_reject=rejects.append, on_good=good.append, split=GrokSplitter(decoder))
    records = [json.loads(line) for block in good for line in block.splitlines()]
    assert found.records == len(records)
    assert found.records + found.rejected_lines + found.blank_lines == found.lines
    return found, records, rejects


def test_an_access_log() -> None:
    """The captures of a common pattern are the fields of a record, as they are written; absent ones are left out."""
    error = b'::1 - - [21/Dec/2025:13:55:37 +0000] "-" 408 - "-" "-"'
    found, records, rejects = read(grok("^%{COMBINEDAPACHELOG}$"), [ACCESS + b"\r\n", b"\n \t\r\n" + error])
    assert (found.lines, found.blank_lines, rejects) == (4, 2, [])
    assert records[0] == {
        "clientip": "192.0.2.7",
        "ident": "-",
        "auth": "frank",
        "timestamp": "21/Dec/2025:13:55:36 +0000",
        "verb": "GET",
        "request": '/a?b=\\"c\\"',
        "httpversion": "1.1",
        "response": "200",
        "bytes": "2326",
        "referrer": '"http://example.org/"',
        "agent": '"Mozilla/5.0 (X11; Linux)"',
    }
    assert records[1]["rawrequest"] == "-"
    assert "verb" not in records[1]
    assert "bytes" not in records[1]
    assert found.keys == (*records[0], "rawrequest")


def test_rejects_are_the_lines_themselves() -> None:
    """With their numbers and places, also behind a byte order mark and a line that is too long."""
    lines = [b"1", b"x" * 10_001, b"two", b"", b"3\xff", b"4", b"5\r6", b"7\r"]
    data = b"\xef\xbb\xbf" + b"\n".join(lines)
    found, records, rejects = read(grok("^%{INT:n}$"), [data[at : at + 7] for at in range(0, len(data), 7)])
    assert [record["n"] for record in records] == ["1", "4", "7"]
    assert {(each.line_number, each.reason) for each in rejects} == {
        (2, "line_too_long"),
        (3, "no_match"),
        (5, "invalid_utf8"),
        (7, "no_match"),
    }
    for each in rejects:
        assert data[each.byte_offset : each.byte_offset + len(each.raw)] == each.raw
    assert [each.raw for each in rejects if each.reason != "line_too_long"] == [lines[2], lines[4], lines[6]]
    assert found.has_bom


class Clock:
    """CPU seconds: so many more at each look."""

    def __init__(self, step: float) -> None:
        self.now, self.step = 0.0, step

    def __call__(self) -> float:
        self.now += self.step
        return self.now


def test_a_file_may_cost_so_much_time() -> None:
    """More for a longer one. One that costs more is quarantined as a whole: each of its lines may be within its own."""
    lines = [b"1234567\n" * 12_500] * 40

    def inspected(seconds: float) -> Inspected:
        split = GrokSplitter(grok("^%{INT:n}$"), MatchingTime(), seconds=Clock(seconds))
        return inspect_lines(lines, Limits(10, 1 << 30), on_reject=lambda _: None, split=split)

    assert inspected(0.15).records == 500_000
    with pytest.raises(FileError, match=r"took 1. CPU seconds for .* expected at most 10, and 1 for each MB") as raised:
        inspected(2.0)
    assert raised.value.status is FileStatus.TOO_COSTLY


def test_only_what_is_new_is_bounded_in_time() -> None:
    """What was read within the bound once is read again on any machine."""
    decoder = grok("^%{INT:n}$")
    assert Formats("grok", grok=decoder).lines == GrokSplitter(decoder, MatchingTime())
    assert Formats("recorded", grok=decoder).lines == GrokSplitter(decoder)


def test_what_the_judge_refuses_is_the_line_itself() -> None:
    """A record on which Spark disagrees is a reject with the text that it is from."""
    decoder = grok("^%{INT:n} %{WORD:w}$")
    rejects: list[Reject] = []
    good: list[bytes] = []
    found = inspect_lines(
        [b"?\n1 a\n2 b\n\n3 c\n"],
        LIMITS,
        on_reject=rejects.append,
        on_good=good.append,
        refused=GrokSplitter(decoder).records_of([b"2 b"]),
        split=GrokSplitter(decoder),
    )
    assert rejects == [Reject(1, 0, "no_match", b"?"), Reject(3, 6, "parsers_disagree", b"2 b")]
    assert (found.records, found.blank_lines) == (2, 1)
    assert b"".join(good) == b'{"n":"1","w":"a"}\n{"n":"3","w":"c"}\n'


HOSTILE = b"a" * 60 + b"!"
NESTED = "^(?<all>(?:a+(?<!x))+)$"


def test_a_hostile_line_is_a_reject() -> None:
    """A line that would take for ever to match has a limit of steps, and its neighbours are records."""
    _, records, rejects = read(grok(NESTED), [b"aa\n" + HOSTILE + b"\na\n"])
    assert [record["all"] for record in records] == ["aa", "a"]
    assert rejects == [Reject(2, 3, "match_too_costly", HOSTILE)]


def test_a_file_of_costly_lines_is_given_up() -> None:
    """So that it does not take hours. It does not matter which rejects may be kept."""
    decoder = grok(NESTED, max_steps=1_000)
    allowed = b"\n".join([HOSTILE] * MAX_COSTLY_LINES)
    assert len(read(decoder, [allowed])[2]) == MAX_COSTLY_LINES
    with pytest.raises(FileError, match="1,000 lines need more steps to match") as raised:
        read(decoder, [allowed, b"\n" + HOSTILE])
    assert raised.value.status == "too_many_rejects"


def test_records_are_made_in_pieces() -> None:
    """Records may be longer than the lines. All of a block are never in memory at once, and nothing gets lost."""
    line = b"\x01" * 5_000
    longest = 0

    def on_good(block: bytes) -> None:
        nonlocal longest
        longest = max(longest, len(block))

    split = GrokSplitter(grok("^(?<a>(?<b>(?<c>.*)))$"))
    found = inspect_lines(
        [(line + b"\n") * 200], LIMITS, on_reject=print, on_good=on_good, split=split, block_bytes=1 << 22
    )
    assert found.records == 200
    assert longest < 1_200_000


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("%{NOPE:a}", "there is no pattern NOPE"),
        ("%{OWN:a}", "in OWN, there is no pattern NOPE"),
        ("%{WORD:a", "expected %{NAME}"),
        ("%{WORD}", "it captures nothing"),
        ("%{WORD:a} %{WORD:a}", "two captures of a line are named a"),
        ("%{WORD:a}(", "it does not compile"),
        ("%{AGAIN:a}", "AGAIN uses itself"),
    ],
)
def test_faults_of_patterns(pattern: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        expanded(pattern, {"OWN": "%{NOPE}", "AGAIN": "%{AGAIN}"})


def test_keys_and_types() -> None:
    """Of all captures, in the order of the pattern; alternatives may share a key."""
    _, captures = expanded("%{INT:n:int} (?:%{IP:[source][ip]}|%{WORD:[source][ip]}) (?<own>x)", {})
    assert captures == [("n", "int"), ("source.ip", ""), ("source.ip", ""), ("own", "")]


def test_rules_of_a_commit_that_are_damaged() -> None:
    with pytest.raises(StagingError, match="does not compile"):
        NativeGrok(GrokRules(regex="(", keys=("a",), max_steps=1)).open()
    with pytest.raises(StagingError, match="1 named groups for 0 keys"):
        NativeGrok(GrokRules(regex="(?<a>b)", keys=(), max_steps=1)).open()


@pytest.mark.parametrize(
    "content", [b"PK\x03\x04" + b"\0" * 100, "a line\n".encode("utf-16") * 20, b"PAR1\x15\x04\x00\x12" * 9]
)
def test_binary_files_are_no_lines(content: bytes) -> None:
    """Such a file is quarantined whole, rather than with a reject for each line feed in it."""
    with pytest.raises(FileError) as raised:
        inspect_lines(
            [content], LIMITS, on_reject=print, split=Formats("grok", grok=grok("%{WORD:a}")).splitter("/raw/a")
        )
    assert raised.value.status == "not_ndjson"


@pytest.mark.parametrize("content", [b"a,b\n1,2\n3,4\n", b"<html>\n", b'[{"a":1}]\n'])
def test_any_text_is_lines(content: bytes) -> None:
    split = Formats("grok", grok=grok("^%{GREEDYDATA:all}$")).splitter("/raw/a")
    found = inspect_lines([content], LIMITS, on_reject=print, split=split)
    assert found.records == content.count(b"\n")


# Python's own expressions are another implementation, with the same meaning of these.
PATTERNS = [
    r"^(?<a>[a-c]+)(?: (?<b>\d*))?(?<c>.*)$",
    r'"(?<a>(?>\\.|[^\\"]+)*)"',
    r"(?<![a-c])(?<a>b+)(?=c)(?<b>.*?)(?<c>-?)$",
    r"^(?:(?<a>ab)|(?<b>a))(?<c>b?)",
]
TEXT = st.text(alphabet=st.sampled_from('abc01 -"\\\t\x01é\U0001f600'), max_size=20)


@pytest.mark.parametrize("pattern", PATTERNS)
@given(lines=st.lists(TEXT, max_size=8), cut=st.integers(1, 30))
def test_any_lines(pattern: str, lines: list[str], cut: int) -> None:
    """Records have what Python's expressions find, and every other line is blank or rejected with its bytes."""
    data = "\n".join(lines).encode()
    expression = re.compile(pattern.replace("(?<a>", "(?P<a>").replace("(?<b>", "(?P<b>").replace("(?<c>", "(?P<c>"))
    lines = (
        [line.decode() for line in (data.split(b"\n") if not data.endswith(b"\n") else data.split(b"\n")[:-1])]
        if data
        else []
    )
    found, records, rejects = read(grok(pattern), [data[at : at + cut] for at in range(0, len(data), cut)])
    told = [(line, expression.search(line)) for line in lines if line.strip(" \t\r")]
    expected = [{key: text for key, text in each.groupdict().items() if text is not None} for _, each in told if each]
    assert (found.lines, records) == (len(lines), expected)
    assert [each.raw for each in rejects] == [line.encode() for line, each in told if each is None]
