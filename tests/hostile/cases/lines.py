"""Lines that are the attack: too long, too deep, too many bad ones, broken text."""

from collections.abc import Callable, Mapping
from typing import Any

from tests.hostile.attack import MIB, Attack, Seen
from tests.hostile.payloads import BAD, LINE, gzip_bomb, zstd_bomb
from tests.hostile.scene import Scene

DEEP = 100_000
_NOT_NDJSON = Seen(statuses={"not_ndjson": 1})
_LONG_FILES = {"input": {"max_decompressed_bytes": 2048 * MIB}}


def of_lines(
    name: str,
    content: Callable[[], bytes],
    expected: Seen,
    *,
    quick: bool = False,
    sections: Mapping[str, Mapping[str, Any]] | None = None,
    columns: str = "",
) -> Attack:
    """An attack by the lines of one file; `columns` is a schema file, or nothing."""

    def make(scene: Scene) -> None:
        scene.deliver_attack([scene.write("attack.ndjson", content())])

    return Attack(
        name=name,
        kind="lines",
        make=make,
        expected=expected,
        quick=quick,
        sections=sections or {},
        columns=columns,
    )


def _compacted(rows: int = 0, **rejects: int) -> Seen:
    return Seen(statuses={"compacted": 1}, rows=rows, rejects=rejects)


def _object(value: bytes) -> bytes:
    return b'{"id": ' + value + b"}\n"


_LONG = (
    of_lines(
        "line-of-1-gb",
        lambda: gzip_bomb(b"a", 1024 * MIB),
        Seen(statuses={"too_many_rejects": 1}),
        sections=_LONG_FILES,
    ),
    of_lines("string-of-15-mib", lambda: _object(b'"' + b"s" * 15 * MIB + b'"'), _compacted(1)),
    of_lines("escapes-of-15-mib", lambda: _object(b'"' + b"\\u0041" * (15 * MIB // 6) + b'"'), _compacted(1)),
    of_lines("line-just-too-long", lambda: _object(b'"' + b"s" * 16 * MIB + b'"'), _compacted(line_too_long=1)),
    of_lines("only-line-feeds", lambda: b"\n" * 8 * MIB, _compacted()),
    of_lines("only-spaces", lambda: zstd_bomb(b" " * 1023 + b"\n", 60 * MIB), _compacted()),
    of_lines("rows-without-keys", lambda: zstd_bomb(b"{}\n", 2 * MIB - 1), _compacted(1_048_575)),
)

_MANY_BAD = (
    of_lines("4-million-bad-lines", lambda: zstd_bomb(BAD, 8 * MIB), Seen(statuses={"too_many_rejects": 1})),
    of_lines(
        "bad-lines-between-good-ones",
        lambda: zstd_bomb(LINE + BAD, 8 * MIB),
        Seen(statuses={"too_many_rejects": 1}),
    ),
    of_lines(
        "bad-lines-of-1-mib",
        lambda: zstd_bomb(b"x" * (MIB - 1) + b"\n", 62 * MIB),
        _compacted(invalid_json=63),
    ),
)

_DEEP = (
    of_lines("deep-arrays", lambda: _object(b"[" * DEEP + b"]" * DEEP), _compacted(too_deep=1), quick=True),
    of_lines("deep-objects", lambda: _object(b'{"a":' * DEEP + b"1" + b"}" * DEEP), _compacted(too_deep=1)),
    of_lines("unclosed-arrays", lambda: b"[" * 15 * MIB + b"\n", _compacted(too_deep=1)),
    of_lines("unclosed-quotes", lambda: b'{"id": ' + b'"\\' * 7 * MIB + b"\n", _compacted(invalid_json=1)),
    of_lines("wide-array", lambda: _object(b"[" + b"1," * 7 * MIB + b"1]"), _compacted(1)),
)

_NUMBERS = (
    of_lines("number-of-a-million-digits", lambda: _object(b"7" * 1_000_000), _compacted(1)),
    of_lines("exponents", lambda: b"".join(_object(b"1e%d" % (10**power)) for power in range(30)), _compacted(30)),
    of_lines(
        "exponents-as-typed-columns",
        lambda: b"".join(
            b'{"price": 1e%d, "count": 1e%d, "at": 1e%d, "day": "9999999-01-01"}\n' % ((10**power,) * 3)
            for power in range(20)
        ),
        _compacted(20),
        columns="".join(
            f'[[columns]]\nname = "{name}"\ntype = "{kind}"\n{more}'
            for name, kind, more in (
                ("price", "decimal(38,9)", ""),
                ("count", "long", ""),
                ("at", "timestamp", 'epoch = "seconds"\n'),
                ("day", "date", ""),
            )
        ),
    ),
    of_lines(
        "digits-as-typed-columns",
        lambda: b'{"price": %s, "count": %s}\n' % (b"9" * 1_000_000, b"1" * 1_000_000),
        _compacted(1),
        columns='[[columns]]\nname = "price"\ntype = "decimal(38,9)"\n[[columns]]\nname = "count"\ntype = "long"\n',
    ),
)

_TEXT = (
    of_lines(
        "broken-utf-8",
        lambda: b'{"id": "\xff"}\n{"id": "\xed\xa0\x80"}\n\xc0\xaf\n',
        _compacted(invalid_utf8=3),
        quick=True,
    ),
    of_lines("utf-16", lambda: '{"id": "é"}\n'.encode("utf-16"), _NOT_NDJSON),
    of_lines("nul-bytes", lambda: b"\0\n" + b'{"id": "\0"}\n' + b'{"id": "a"}\0\n', _compacted(invalid_json=3)),
    of_lines("file-of-nul-bytes", lambda: b"\0" * 15 * MIB, _NOT_NDJSON),
    of_lines("escaped-nuls", lambda: b'{"id\\u0000": "a\\u0000b"}\n', _compacted(1)),
    of_lines("lone-surrogates", lambda: b'{"id": "\\ud800"}\n{"\\udfff": 1}\n', _compacted(invalid_json=2)),
    of_lines("only-carriage-returns", lambda: b'{"id": 1}\r{"id": 2}\r', _NOT_NDJSON),
    of_lines(
        "byte-order-marks", lambda: b"\xef\xbb\xbf" + LINE + b"\xef\xbb\xbf" + LINE, _compacted(1, invalid_json=1)
    ),
    of_lines(
        "control-characters",
        lambda: _object(b'"\x1b[2J"') + _object(b'"\\u001b]0;x\\u0007"'),
        _compacted(1, invalid_json=1),
    ),
    of_lines("two-objects-a-line", lambda: LINE.strip() * 2 + b"\n" + LINE, _compacted(1, invalid_json=1)),
    of_lines(
        "not-json-numbers", lambda: _object(b"NaN") + _object(b"-Infinity") + _object(b"01"), _compacted(invalid_json=3)
    ),
)

ATTACKS = (*_LONG, *_MANY_BAD, *_DEEP, *_NUMBERS, *_TEXT)
