import gzip
from collections import Counter
from datetime import datetime

import orjson
import pytest

from compactor.demo.events import BAD_LINES, LATE_KEY, Flaws, make_event_lines, write_day

KEYS = (
    *("id", "event", "time", "received_at", "step", "session", "visitor", "ip", "user_id"),
    *("member", "device", "os", "browser", "version", "agent", "country", "city", "locale"),
    *("page", "referrer", "sku", "category", "price", "currency", "units", "custom_data"),
)
"""The top-level keys of every event, in the order in which they are written."""

SMALL = {"total_bytes": 500_000, "file_bytes": 100_000}


def written(**options):
    """All files of a day by name, as stored, and the counts."""
    files: dict[str, bytes] = {}
    counts = write_day(files.__setitem__, seed=3, **{**SMALL, **options})
    return files, counts


def plain(data: bytes) -> bytes:
    return gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data


def is_object(line: bytes) -> bool:
    try:
        return isinstance(orjson.loads(line), dict)
    except ValueError:
        return False


def test_every_line_is_an_object_with_the_same_26_keys():
    """Every line is a JSON object with all keys, in their order, and about as long as those of the reference events."""
    data = make_event_lines(1, 500)
    assert data.endswith(b"\n")
    assert 550 < len(data) / 500 < 700
    lines = data.split(b"\n")[:-1]
    assert len(lines) == 500
    assert len(KEYS) == 26
    assert {tuple(orjson.loads(line)) for line in lines} == {KEYS}


def test_values_have_every_kind_of_json():
    """Texts, whole numbers, decimals with a trailing zero, booleans, nulls and nested lists all occur."""
    data = make_event_lines(1, 500)
    events = [orjson.loads(line) for line in data.splitlines()]
    kinds = {type(value) for event in events for value in event.values()}
    assert kinds == {str, int, float, bool, type(None), dict}
    assert any(isinstance(value, list) for value in events[0]["custom_data"].values())
    assert b'.10,"currency"' in data


def test_times_rise_and_stay_in_their_day():
    """Events are ordered by time, and neither of their times leaves the day."""
    events = [orjson.loads(line) for line in make_event_lines(1, 500, day="2024-02-29", begin=0.999_99).splitlines()]
    times = [event["time"] for event in events]
    assert times == sorted(times)
    all_times = [datetime.fromisoformat(event[key]) for event in events for key in ("time", "received_at")]
    assert {time.date().isoformat() for time in all_times} == {"2024-02-29"}


def test_the_seed_decides_the_bytes():
    """The same seed gives the same files, another seed gives others."""
    assert make_event_lines(1, 50) == make_event_lines(1, 50)
    assert make_event_lines(1, 50) != make_event_lines(2, 50)
    flaws = Flaws(bad_lines_of_each_kind=2, gzip_files=2, late_key=True)
    assert written(flaws=flaws) == written(flaws=flaws)


def test_no_two_files_and_no_two_events_are_the_same():
    """The ids of all events of a day differ."""
    files, counts = written()
    ids = [orjson.loads(line)["id"] for data in files.values() for line in data.splitlines()]
    assert len(set(ids)) == len(ids) == counts.lines


def test_files_are_named_after_the_day_and_filled_with_whole_lines():
    """Files are numbered from 1, and each is as full as whole lines allow."""
    files, _ = written(day="2025-01-02")
    assert list(files) == [f"2025-01-02-part-000{number}.ndjson" for number in range(1, 6)]
    for data in files.values():
        assert 99_000 < len(data) <= 100_000
        assert data.endswith(b"}\n")


@pytest.mark.parametrize(
    "flaws",
    [
        Flaws(),
        Flaws(bad_lines_of_each_kind=1),
        Flaws(bad_lines_of_each_kind=7, gzip_files=3, late_key=True),
        Flaws(gzip_files=5),
    ],
)
def test_the_counts_are_what_a_parser_finds(flaws):
    """The counts of files, bytes, lines and bad lines are right, with flaws and without."""
    files, counts = written(flaws=flaws)
    lines = [line for data in files.values() for line in plain(data).split(b"\n")[:-1]]
    assert counts.files == len(files)
    assert counts.stored_bytes == sum(map(len, files.values()))
    assert counts.decoded_bytes == sum(len(plain(data)) for data in files.values())
    assert counts.lines == len(lines)
    assert counts.records == sum(map(is_object, lines))
    assert sum(counts.bad_lines.values()) == 5 * flaws.bad_lines_of_each_kind


@pytest.mark.parametrize("kind", BAD_LINES)
def test_a_bad_line_is_no_object_and_stays_one_line(kind):
    """No kind of bad line is a JSON object, or becomes two lines."""
    for line in make_event_lines(4, 200).splitlines():
        bad = BAD_LINES[kind](line)
        assert not is_object(bad)
        assert b"\n" not in bad


def test_bad_lines_of_each_kind_are_spread_over_the_files():
    """No file gets all the bad lines, and none ends with one."""
    files, _ = written(flaws=Flaws(bad_lines_of_each_kind=4))
    bad = Counter(name for name, data in files.items() for line in data.splitlines() if not is_object(line))
    assert set(bad) == set(files)
    assert all(is_object(data.splitlines()[-1]) for data in files.values())


def test_every_other_compressed_file_does_not_say_so():
    """Compressed files come with and without `.gz` in their names."""
    files, _ = written(flaws=Flaws(gzip_files=4))
    compressed = [name for name, data in files.items() if data.startswith(b"\x1f\x8b")]
    assert len(compressed) == 4
    assert sum(name.endswith(".ndjson.gz") for name in compressed) == 2
    assert sum(name.endswith(".ndjson") for name in compressed) == 2


def test_the_late_key_is_in_the_last_line_of_the_last_file_only():
    """The late key appears once, at the very end, in a good line."""
    files, _ = written(flaws=Flaws(bad_lines_of_each_kind=3, gzip_files=1, late_key=True))
    *earlier, last = (line for data in files.values() for line in plain(data).splitlines())
    assert LATE_KEY in orjson.loads(last)
    assert not any(LATE_KEY.encode() in line for line in earlier)


@pytest.mark.parametrize(
    ("flaws", "message"),
    [
        (Flaws(gzip_files=6), "6 compressed files asked for"),
        (Flaws(bad_lines_of_each_kind=100), "no room for 100 bad ones"),
    ],
)
def test_asking_for_more_flaws_than_fit_is_refused(flaws, message):
    """Too many flaws are an error that says what was expected."""
    with pytest.raises(ValueError, match=message):
        written(flaws=flaws)
