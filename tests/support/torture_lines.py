"""Lines that try the patience of a JSON parser: those that are records, those that are not, and those in between."""

# ruff: noqa: E501 - tables read best in full lines

import json

from hypothesis import strategies as st

BAD_LINES = (
    (b'{"id":"x"} trailing', "invalid_json"),
    (b'{"id":"x"},', "invalid_json"),
    (b'{"id":"x"}{"id":"x"}', "invalid_json"),
    (b'{"id":"x"} {"id":"x"}', "invalid_json"),
    (b'{"id":"x"}]', "invalid_json"),
    (b'{"id":NaN}', "invalid_json"),
    (b'{"id":-Infinity}', "invalid_json"),
    (b'{"id":[NaN]}', "invalid_json"),
    (b"{'id':'x'}", "invalid_json"),
    (b'{id:"x"}', "invalid_json"),
    (b'{"id":"x"} // comment', "invalid_json"),
    (b'{"id":/* comment */"x"}', "invalid_json"),
    (b'# {"id":"x"}', "invalid_json"),
    (b'{"id":"x"', "invalid_json"),
    (b'{"id":"x', "invalid_json"),
    (b'{"id":"x",}', "invalid_json"),
    (b'{"id":01}', "invalid_json"),
    (b'{"id":+1}', "invalid_json"),
    (b'{"id":.5}', "invalid_json"),
    (b'{"id":1.}', "invalid_json"),
    (b'{"id":0x1}', "invalid_json"),
    (b'{"id":True}', "invalid_json"),
    (b'{"id":"\\x41"}', "invalid_json"),
    (b'{"id":"tab\tin string"}', "invalid_json"),
    (b'{"id":"\\ud800"}', "invalid_json"),
    (b'{"id":"\\udc00\\ud800"}', "invalid_json"),
    (b'{"\\ud800":1}', "invalid_json"),
    (b'{"id":{"x":"\\udfff"}}', "invalid_json"),
    (b'{"id":"\xff"}', "invalid_utf8"),
    (b'{"id":"\xc0\xaf"}', "invalid_utf8"),
    (b'{"id":"\xed\xa0\x80"}', "invalid_utf8"),
    (b'{"id":"\xf4\x90\x80\x80"}', "invalid_utf8"),
    (b'{"id":"cut \xe2\x82', "invalid_utf8"),
    (b'{"id":"\x00"}', "invalid_json"),
    (b"\x00", "invalid_json"),
    (b'\x00{"id":"x"}', "invalid_json"),
    (b'{"id":"x"}\x00', "invalid_json"),
    (b'\xef\xbb\xbf{"id":"x"}', "invalid_json"),
    (b'\x0b{"id":"x"}', "invalid_json"),
    (b'\xc2\xa0{"id":"x"}', "invalid_json"),
    ('{"id":"x"}'.encode("utf-16-le"), "invalid_json"),
    ('{"id":"é"}'.encode("utf-16-be"), "invalid_utf8"),
    (b"\x0c", "invalid_json"),
    (b"[]", "not_an_object"),
    (b'[{"id":"x"}]', "not_an_object"),
    (b"null", "not_an_object"),
    (b"1.10", "not_an_object"),
    (b'"{}"', "not_an_object"),
    (b"true\r", "not_an_object"),
    (b'{"id":' + b"[" * 1500 + b"]" * 1500 + b"}", "too_deep"),
    (b'{"id":{"x":"\\ud83d"}}', "invalid_json"),
    (b'{"id":["\\udc00"]}', "invalid_json"),
    (b'{"id":"\\ud83d\\u0041"}', "invalid_json"),
    (b'{"id":"\\ud83dx"}', "invalid_json"),
    (b'{"id":"\\u00g0"}', "invalid_json"),
    (b'{"id":"\\u12"}', "invalid_json"),
    (b'{"id":"\\', "invalid_json"),
    (b'{"id":"\\"}', "invalid_json"),
    (b'{"id":1}/', "invalid_json"),
    (b'{"id":1}#', "invalid_json"),
    (b'{"id":1} /* x */', "invalid_json"),
    (b'{"id":-}', "invalid_json"),
    (b'{"id":-01}', "invalid_json"),
    (b'{"id":1e}', "invalid_json"),
    (b'{"id":1e+}', "invalid_json"),
    (b'{"id":1.e1}', "invalid_json"),
    (b'{"id":1.5.5}', "invalid_json"),
    (b'{"id":nul}', "invalid_json"),
    (b'{"id":nulll}', "invalid_json"),
    (b'{"id":truefalse}', "invalid_json"),
    (b'{"id":[1,]}', "invalid_json"),
    (b'{"id":[,1]}', "invalid_json"),
    (b'{"id":[1 2]}', "invalid_json"),
    (b'{"id":[1}', "invalid_json"),
    (b'{"id":{"a":1]}', "invalid_json"),
    (b'{"id":{"a"}}', "invalid_json"),
    (b'{"id":{"a":}}', "invalid_json"),
    (b'{"id":{1:2}}', "invalid_json"),
    (b'{"id":{"a":1,}}', "invalid_json"),
    (b'{"id"}', "invalid_json"),
    (b'{"id":}', "invalid_json"),
    (b'{"id" 1}', "invalid_json"),
    (b"{,}", "invalid_json"),
    (b"{", "invalid_json"),
    (b"}", "invalid_json"),
    (b'{"id":"a\x1fb"}', "invalid_json"),
    (b'{"id":"\x7f"}x', "invalid_json"),
    (b'{"id":"\xc2"}', "invalid_utf8"),
    (b'{"id":"\xe0\x80\x80"}', "invalid_utf8"),
    (b'{"id":"\xf8\x88\x80\x80\x80"}', "invalid_utf8"),
    (b'{"id":"\x80"}', "invalid_utf8"),
    (b'{"id":' + b"[" * 100_000, "too_deep"),
    (b"[" * 100_000, "too_deep"),
    (b'{"id":1e400,"deep":' + b"[" * 1500 + b"]" * 1500 + b"}", "invalid_json"),
    (b'{"id":1e400x}', "invalid_json"),
)
"""Lines that are no record, with the reason why."""

GOOD_LINES = (
    b'{"id":1}',
    b"{}",
    b" \t{ \t} \r",
    b'{"":""}',
    b'{"":null}',
    b'{"id":null,"id":1}',
    b'{"id":1,"id":null}',
    b'{"id":1,"ID":2,"Id":3}',
    b'{"id":1,"\\u0069d":2}',
    b'{"\\u0069d":2,"id":1}',
    b'{"a\\"b":1,"a\\\\b":2,"a\\nb":3,"a\\/b":4}',
    b'{"id":"\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\ud83d\\ude00\\u0000"}',
    '{"id":"é 日本 😀","日本":"\u2028\u0085","😀":1}'.encode(),
    b'{"id":"\x7f"}',
    b'{"id":"\xef\xbb\xbf","\xef\xbf\xbe":"\xef\xbf\xbf","x":"\xf4\x8f\xbf\xbf"}',
    b'{"id":-0,"a":-0.0,"b":1E+2,"c":1e-2,"d":1.10,"e":0.0e-0,"f":0}',
    b'{"id":1e400,"a":-1e400,"b":1e-400,"c":%s}' % (b"7" * 400),
    b'{"id":18446744073709551616,"a":-9223372036854775809,"b":0.30000000000000004}',
    b'{"id":[1, 2 ,{"a" : 1.10}] ,"a":{ } , "b" :[ ]\t, "c":{"d":[{},[],{"e":[[]]}]}}',
    b'{"id":["\\ud83d\\ude00","]}\\"",{"}":"{"}]}',
    b'{"id":true,"a":false,"b":[true,false,null]}',
    b'{"id":"%s"}' % (b"x" * 5_000),
    b'{"id":"%s"}' % (b"\\u00e9" * 500),
    b'{"%s":1}' % (b"k" * 3_000),
    b"{%s}" % b",".join(b'"key %d":%d' % (at, at) for at in range(300)),
    b"{%s}" % b",".join(b'"key %d":%d' % (at, at) for at in range(299, -1, -1)),
    b'{"id":%s%s}' % (b"[" * 1023, b"]" * 1023),
    b'{"id":%s1%s}' % (b'{"a":' * 1023, b"}" * 1023),
)
"""Lines that are records."""

DEEP_LINES = tuple(
    b'{"id":%s%s%s}' % (opening * depth, inner, closing * depth)
    for depth in (1022, 1023, 1024, 1025)
    for opening, inner, closing in ((b"[", b"", b"]"), (b'{"a":', b"1", b"}"), (b'[{"a":', b"[]", b"}]"))
)
"""Lines round about the limit of nesting."""

LONG_KEY_LINES = tuple(
    template % (character * length)
    for length in (255, 256, 257, 60_000)
    for character in (b"k", "ü".encode(), b"\\u00fc", b"\\ud83d\\ude00", b"\\n")
    for template in (b'{"%s":1,"id":2}', b'{"id":1,"a":{"%s":2}}')
)
"""Lines round about the limit of the length of top-level keys, and nested keys as long, which have none."""

FRAGMENTS = (
    *(b"{", b"}", b"[", b"]", b'"', b":", b",", b"\n", b"\n\n", b"\r\n", b" ", b"\t", b"\\", b"\\u", b"\\ud83d", b"\\ude00"),
    *(b"\xff", b"\xef\xbb\xbf", b"\x00", b"\x1f", b"\x7f", b"\xc3", b"\xa9", b"1", b"0", b"-", b"+", b".", b"e", b"E", b"null"),
    *(b"true", b"false", b"NaN", b"/", b"//", b"#", b"'", b"{}", b'{"a":1}', b'{"b":"x"} ', b'"a":', b'"\\u0061":', b"[1]"),
    *(b'{"a":[', b"]}", b'{"a":{"b":', b"}}", b"1e400", b"x"),
)  # fmt: skip
"""What soups of bytes are made of."""


_SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=4)
)
_VALUES = _SCALARS | st.lists(_SCALARS, max_size=2) | st.dictionaries(st.text(max_size=2), _SCALARS, max_size=2)


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A record, a few bytes of which are cut out or replaced. It may have become several lines."""
    data = draw(st.one_of(st.sampled_from(GOOD_LINES[:20]), objects()))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(data)))
        data = data[:at] + draw(st.sampled_from(FRAGMENTS)) + data[at + draw(st.integers(0, 2)) :]
    return data


@st.composite
def objects(draw: st.DrawFn) -> bytes:
    """A record as a producer would write it."""
    document = draw(st.dictionaries(st.sampled_from(["id", "a", "b", "é", ""]), _VALUES, max_size=3))
    separators = draw(st.sampled_from([(",", ":"), (", ", ": "), (" ,\t", " :\r")]))
    return json.dumps(document, ensure_ascii=draw(st.booleans()), separators=separators).encode("utf-8", "replace")
