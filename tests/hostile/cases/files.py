"""Files whose stored form is the attack: bombs, windows, floods of members, damage."""

import bz2
import gzip
import lzma
from collections.abc import Callable

import zstandard

from tests.hostile.attack import MIB, Attack, Seen
from tests.hostile.payloads import (
    BAD,
    BOMBS,
    LINE,
    cut,
    gzip_members,
    gzip_with_name,
    noise,
    snappy_bomb,
    xz_dictionary,
    zstd_window,
)
from tests.hostile.scene import Scene

GOOD = LINE * 1000
TOO_LARGE = Seen(statuses={"too_large": 1})
NOT_NDJSON = Seen(statuses={"not_ndjson": 1})
UNREADABLE = Seen(statuses={"unreadable": 1})


def of_file(name: str, kind: str, content: Callable[[], bytes], expected: Seen, *, quick: bool = False) -> Attack:
    """An attack by the content of one file, beside a good one in the same manifest."""

    def make(scene: Scene) -> None:
        scene.deliver_attack([scene.write("attack.ndjson", content())])

    return Attack(name=name, kind=kind, make=make, expected=expected, quick=quick)


def _rows(count: int) -> Seen:
    return Seen(statuses={"compacted": 1}, rows=count)


_BOMBS = tuple(
    of_file(
        f"{codec}-bomb",
        "bombs",
        lambda bomb=bomb, length=length: bomb(LINE, length),
        TOO_LARGE,
        quick=codec == "zstd",
    )
    for (codec, bomb), length in zip(BOMBS.items(), (256 * MIB,) * 4 + (96 * MIB,) * 2, strict=True)
)

_ZEROS = (
    of_file("gzip-zeros", "bombs", lambda: BOMBS["gzip"](b"\0", 512 * MIB), NOT_NDJSON),
    of_file("zstd-blanks", "bombs", lambda: BOMBS["zstd"](b" ", 512 * MIB), TOO_LARGE),
    of_file(
        "gzip-in-gzip",
        "bombs",
        lambda: gzip.compress(b"\x1f\x8b\x08" + b"x" * 50, mtime=0),
        NOT_NDJSON,
    ),
)

_WINDOWS = (
    of_file("zstd-window-of-2-gib", "windows", lambda: zstd_window(31, GOOD), UNREADABLE, quick=True),
    of_file("zstd-window-of-2-tib", "windows", lambda: zstd_window(41, GOOD), UNREADABLE),
    of_file("zstd-window-of-128-mib", "windows", lambda: zstd_window(27, GOOD), _rows(1000)),
    of_file("xz-dictionary-of-1-gib", "windows", lambda: xz_dictionary(1024 * MIB), UNREADABLE),
)

_MEMBERS = (
    of_file("gzip-members", "members", lambda: gzip_members(100_000), _rows(100_000)),
    of_file("empty-gzip-members", "members", lambda: gzip_members(500_000, b""), _rows(0)),
    of_file("empty-bzip2-streams", "members", lambda: bz2.compress(b"") * 500_000, _rows(0)),
    of_file("empty-xz-streams", "members", lambda: lzma.compress(b"") * 200_000, _rows(0)),
    of_file("empty-zstd-frames", "members", lambda: zstandard.compress(b"") * 1_000_000, _rows(0)),
    of_file("skippable-zstd-frames", "members", lambda: b"\x50\x2a\x4d\x18\0\0\0\0" * 500_000, _rows(0), quick=True),
    of_file("snappy-padding", "members", lambda: snappy_bomb(LINE, 0) + b"\xfe\0\0\0" * 2_000_000, _rows(5461)),
    of_file("gzip-name-of-32-mib", "members", lambda: gzip_with_name(32 * MIB), _rows(1)),
)

_DAMAGE = (
    of_file("truncated-gzip", "damage", lambda: cut(gzip.compress(GOOD)), UNREADABLE, quick=True),
    of_file("truncated-bzip2", "damage", lambda: cut(bz2.compress(GOOD)), UNREADABLE),
    of_file("truncated-xz", "damage", lambda: cut(lzma.compress(GOOD)), UNREADABLE),
    of_file("truncated-zstd", "damage", lambda: cut(zstandard.compress(GOOD)), UNREADABLE),
    of_file("truncated-snappy", "damage", lambda: cut(snappy_bomb(LINE, MIB)), UNREADABLE),
    of_file("wrong-checksum", "damage", lambda: cut(gzip.compress(GOOD), 8) + b"\0" * 8, UNREADABLE),
    of_file("bytes-after-gzip", "damage", lambda: gzip.compress(GOOD) + b"more", UNREADABLE),
    of_file("noise-as-zstd", "damage", lambda: b"\x28\xb5\x2f\xfd" + noise(MIB), UNREADABLE),
    of_file("noise-as-snappy", "damage", lambda: b"\xff\x06\x00\x00sNaPpY" + noise(MIB), UNREADABLE),
    of_file(
        "bad-line-after-gzip-members",
        "damage",
        lambda: gzip_members(10) + gzip.compress(BAD),
        Seen(statuses={"compacted": 1}, rows=10, rejects={"invalid_json": 1}),
    ),
)

ATTACKS = (*_BOMBS, *_ZEROS, *_WINDOWS, *_MEMBERS, *_DAMAGE)
