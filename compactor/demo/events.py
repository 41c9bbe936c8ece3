"""Generates shop events as NDJSON. The same seed gives the same bytes; they compress like real events."""

import gzip
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import product

COUNTRIES = (
    ("DE", "Berlin", "de-DE"),
    ("DE", "München", "de-DE"),
    ("FR", "Paris", "fr-FR"),
    ("GB", "London", "en-GB"),
    ("US", "New York", "en-US"),
    ("US", "Austin", "en-US"),
    ("ES", "Málaga", "es-ES"),
    ("PL", "Łódź", "pl-PL"),
    ("JP", "東京", "ja-JP"),
    ("BR", "São Paulo", "pt-BR"),
)
EVENT_NAMES = (
    *("page_view",) * 9,
    *("product_view",) * 6,
    *("search",) * 3,
    *("add_to_cart",) * 2,
    "remove_from_cart",
    "checkout_start",
    "purchase",
)
CATEGORIES = ("shoes", "jackets", "books", "kitchen", "garden", "audio", "phones", "toys", "sports", "beauty")
REFERRERS = ("null", "null", '"search.example.com"', '"news.example.org/deals"', '"social.example.net"')
EXPERIMENTS = ("[]", '["pay-b"]', '["find-2","pay-a"]', '["badge","find-2","slim"]')
SYSTEMS = (
    ("desktop", "Windows", "Windows NT 10.0"),
    ("desktop", "macOS", "Macintosh"),
    ("desktop", "Linux", "X11; Linux x86_64"),
    ("mobile", "Android", "Android 14"),
    ("tablet", "Android", "Android 13"),
)
_POOL_SEED = 20251221  # fixes the shop; the seed of the events varies the day
_USERS = 20_000
_PRODUCTS = 4_000


@cache
def devices() -> tuple[str, ...]:
    """Snippets of the five keys of each device."""
    return tuple(
        f'"device":"{kind}","os":"{system}","browser":"Chrome","version":"{major % 7 + 3}.{major % 10}.0",'
        f'"agent":"Chrome/{major}.0.{build} ({token})"'
        for (kind, system, token), major, build in product(SYSTEMS, range(118, 132), (5993, 6045, 6099, 6167))
    )


@cache
def users() -> tuple[str, ...]:
    """Snippets of the two keys of each user; two in five are not members and have no id."""
    rng = random.Random(_POOL_SEED)  # noqa: S311 - made-up data, no secret
    known = [f'"user_id":"u-{rng.randrange(10_000_000):07d}","member":true' for _ in range(_USERS * 3 // 5)]
    return (*known, *('"user_id":null,"member":false',) * (_USERS - len(known)))


@cache
def products() -> tuple[tuple[str, str], ...]:
    """The path of each product in the shop, and a snippet of its four keys; prices keep two decimals, as in 1.10."""
    rng = random.Random(_POOL_SEED + 1)  # noqa: S311 - made-up data, no secret
    made = []
    for number in range(_PRODUCTS):
        category = rng.choice(CATEGORIES)
        price = f"{rng.randrange(1, 400)}.{rng.choice(('00', '10', '49', '50', '90', '99'))}"
        snippet = f'"sku":"p-{number:05d}","category":"{category}","price":{price},"currency":"EUR"'
        made.append((f"{category}/{number:05d}", snippet))
    return tuple(made)


LATE_KEY = "coupon_code"
FILE_BYTES = 3_670_016  # 3.5 MiB, the size that the reference producers write
DAY = "2025-12-21"

_TEMPLATE = (
    '{"id":"%s","event":"%s","time":"%s","received_at":"%s","step":%d,%s,'
    '"page":"/%s?v=%012x","referrer":%s,%s,"units":%d,'
    '"custom_data":{"trace":"%032x","tests":%s,"scroll":%.2f,"load_ms":[%d,%d]}}\n'
)
_DAY_MS = 86_400_000
_EVENTS_PER_SESSION = 2
_SHORTEST_LINE_BYTES = 600  # no line is shorter; shows how many lines are sure to fill a file


@dataclass(frozen=True, slots=True)
class Flaws:
    """Deliberate faults in the input."""

    bad_lines_of_each_kind: int = 0  # lines of each kind of `BAD_LINES` that replace good ones, spread over all files
    gzip_files: int = 0  # compressed files; every second one of them has no `.gz` in its name
    late_key: bool = False  # whether the last line of the last file, and no other, has `LATE_KEY`


@dataclass(frozen=True, slots=True)
class DayCounts:
    """The counts of what was written. Lines include the bad ones, which are also counted by kind."""

    files: int
    stored_bytes: int
    decoded_bytes: int
    lines: int
    bad_lines: Mapping[str, int] = field(default_factory=dict)

    @property
    def records(self) -> int:
        """Lines that are a JSON object."""
        return self.lines - sum(self.bad_lines.values())


BAD_LINES: Mapping[str, Callable[[bytes], bytes]] = {
    "truncated": lambda line: line[: len(line) // 2],
    "trailing_garbage": lambda line: line + b' {"id":"second"}',
    "broken_utf8": lambda line: line.replace(b'"currency":"', b'"currency":"\xc3\x28', 1),
    "single_quotes": lambda line: line.replace(b'"', b"'"),
    "array": lambda line: b"[" + line + b"]",
}
"""Each turns a good line, without its line feed, into one that is not a JSON object."""


def make_event_lines(seed: int | str, count: int, *, day: str = DAY, begin: float = 0.0, end: float = 1.0) -> bytes:
    """Make events, ordered by time: JSON objects of about 600 bytes with the same 26 keys, each ending in a line feed.

    The same seed and arguments give the same bytes. The first event is at `begin`, the last before `end`; both are
    fractions of the day `yyyy-mm-dd`.
    """
    rng = random.Random(f"{seed}")  # noqa: S311 - made-up data, no secret
    sessions = _sessions(rng, count // _EVENTS_PER_SESSION + 1)
    ids = rng.randbytes(16 * count).hex()
    items = rng.choices(products(), k=count)
    first_ms, span_ms = int(begin * _DAY_MS), (end - begin) * _DAY_MS
    times = [first_ms + int(span_ms * number / count) for number in range(count)]
    rows = zip(
        (ids[at : at + 32] for at in range(0, 32 * count, 32)),
        rng.choices(EVENT_NAMES, k=count),
        (_iso(day, ms) for ms in times),
        (_iso(day, ms + 40 + int(rng.expovariate(1 / 400))) for ms in times),
        rng.choices(range(1, 60), k=count),
        rng.choices(sessions, k=count),
        (path for path, _ in items),
        (rng.getrandbits(48) for _ in range(count)),
        rng.choices(REFERRERS, k=count),
        (snippet for _, snippet in items),
        rng.choices((1, 1, 1, 2, 3), k=count),
        (rng.getrandbits(128) for _ in range(count)),
        rng.choices(EXPERIMENTS, k=count),
        (rng.random() for _ in range(count)),
        rng.choices(range(40, 900), k=count),
        rng.choices(range(200, 4000), k=count),
        strict=True,
    )
    return "".join(map(_TEMPLATE.__mod__, rows)).encode()


def write_day(
    write: Callable[[str, bytes], object],
    *,
    seed: int,
    total_bytes: int,
    file_bytes: int = FILE_BYTES,
    day: str = DAY,
    flaws: Flaws = Flaws(),
) -> DayCounts:
    """Make one day of NDJSON files, named `2025-12-21-part-0001.ndjson` and so on, and write each by name and content.

    The same seed and arguments give the same files. Each but the last has `file_bytes`, up to its last complete line.

    Raises:
        ValueError: The flaws do not fit into the files.
    """
    files = -(-total_bytes // file_bytes)
    if flaws.gzip_files > files:
        raise ValueError(f"{flaws.gzip_files} compressed files asked for, but {total_bytes} bytes make {files} files")
    kinds = list(BAD_LINES) * flaws.bad_lines_of_each_kind
    stored_bytes = decoded_bytes = line_count = 0
    for number in range(files):
        room = min(file_bytes, total_bytes - number * file_bytes)
        data = _fill(f"{seed}/{number}", room, day, number / files, (number + 1) / files)
        data = _flawed(data, kinds[number::files], late_key=flaws.late_key and number == files - 1)
        decoded_bytes += len(data)
        line_count += data.count(b"\n")
        name, stored = _store(f"{day}-part-{number + 1:04d}.ndjson", data, _gzip_turn(number, files, flaws.gzip_files))
        stored_bytes += len(stored)
        write(name, stored)
    bad_lines = dict.fromkeys(BAD_LINES, flaws.bad_lines_of_each_kind) if flaws.bad_lines_of_each_kind else {}
    return DayCounts(files, stored_bytes, decoded_bytes, line_count, bad_lines)


def _sessions(rng: random.Random, count: int) -> list[str]:
    """JSON snippets of the thirteen keys that stay the same through a session."""
    return [
        f'"session":"{rng.getrandbits(64):016x}","visitor":"{rng.getrandbits(64):016x}",'
        f'"ip":"{address >> 16 & 255}.{address >> 8 & 255}.{address & 255}.{address >> 24}",{user},{device},'
        f'"country":"{country}","city":"{city}","locale":"{locale}"'
        for user, device, (country, city, locale), address in zip(
            rng.choices(users(), k=count),
            rng.choices(devices(), k=count),
            rng.choices(COUNTRIES, k=count),
            (rng.getrandbits(32) for _ in range(count)),
            strict=True,
        )
    ]


def _iso(day: str, ms: int) -> str:
    """A time of the day in ISO 8601; at most its last millisecond."""
    seconds, ms = divmod(min(ms, _DAY_MS - 1), 1000)
    minutes, seconds = divmod(seconds, 60)
    return "%sT%02d:%02d:%02d.%03dZ" % (day, *divmod(minutes, 60), seconds, ms)  # noqa: UP031 - twice as fast


def _fill(seed: str, room: int, day: str, begin: float, end: float) -> bytes:
    """As many complete lines as fit into `room` bytes, at least one."""
    data = make_event_lines(seed, room // _SHORTEST_LINE_BYTES + 1, day=day, begin=begin, end=end)
    cut = data.rfind(b"\n", 0, room) + 1
    return data[: cut or data.index(b"\n") + 1]


def _flawed(data: bytes, kinds: list[str], *, late_key: bool) -> bytes:
    """Replace evenly spread lines by bad ones, and add the late key to the last line."""
    if not kinds and not late_key:
        return data
    lines = data.split(b"\n")[:-1]
    if len(lines) < 2 * (len(kinds) + 1):  # so that the last line stays good
        raise ValueError(f"a file of {len(lines)} lines has no room for {len(kinds)} bad ones: expected at most half")
    for number, kind in enumerate(kinds, start=1):
        at = number * len(lines) // (len(kinds) + 1)
        lines[at] = BAD_LINES[kind](lines[at])
    if late_key:
        lines[-1] = lines[-1][:-1] + f',"{LATE_KEY}":"WINTER10"}}'.encode()
    return b"\n".join([*lines, b""])


def _gzip_turn(number: int, files: int, gzip_files: int) -> int | None:
    """The number of a compressed file among the compressed ones; None if the file is not compressed."""
    before, after = number * gzip_files // files, (number + 1) * gzip_files // files
    return before if after > before else None


def _store(name: str, data: bytes, gzip_turn: int | None) -> tuple[str, bytes]:
    """The name and the bytes to store a file with."""
    if gzip_turn is None:
        return name, data
    return (f"{name}.gz" if gzip_turn % 2 == 0 else name), gzip.compress(data, compresslevel=6, mtime=0)
