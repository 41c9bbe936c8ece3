"""Texts that have a variant, or nearly."""

import random

from compactor.schema.variants.json_values import MAX_DEPTH, MAX_TEXT_BYTES

_NINES = "9" * 38

VARIANT_TEXTS = (
    "[]",
    "{}",
    "[[],{},[{}]]",
    '{"a":1,"b":[true,false,null],"c":{"d":"e"}}',
    '{"b":1,"a":2,"c":3,"aa":4,"":5}',
    ' {"a":1}',
    '{"a":1} ',
    "{ \t\n\r}",
    '{ "a" : [ 1 , 2 ] ,"b":\t{ } }',
    r'["\"\\\/\b\f\n\r\t\u0041\u00e9\u20ac\ud83d\ude00"]',
    r'{"\u0061":1,"b":{"\u0061":2}}',
    '["\u00e9\u20ac\U0001f600\x7f\u2028"]',
    '{"\U0001f600":1,"\uffff":2,"z":3}',
    f'["{"x" * 63}","{"x" * 64}","{"é" * 32}","{"é" * 31}x"]',
    r'["' + r"\u0078" * 63 + r'","' + r"\u0078" * 64 + '"]',
    f"[{','.join(map(str, range(255)))}]",
    f"[{','.join(map(str, range(256)))}]",
    f"[{','.join(map(str, range(30_000)))}]",
    "{" + ",".join(f'"k{at}":{at}' for at in range(300)) + "}",
    "{" + ",".join(f'"{"k" * 200}{at}":[]' for at in range(400)) + "}",
    "[" * MAX_DEPTH + "]" * MAX_DEPTH,
    "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1),
    '{"a":' * MAX_DEPTH + "1" + "}" * MAX_DEPTH,
    "[" * 5_000 + "]" * 5_000,
    f'["{"x" * (MAX_TEXT_BYTES - 4)}"]',
    f'["{"x" * (MAX_TEXT_BYTES - 3)}"]',
    "[0,-0,0.0,-0.0,0e5,-0e5]",
    "[127,128,-128,-129,32767,32768,-32768,-32769,2147483647,2147483648,-2147483648,-2147483649]",
    "[0.0000000001,0.000000001,0.0030000000000000005,0.000000000000000001,0.00000000012]",
    "[9223372036854775807,9223372036854775808,-9223372036854775808,-9223372036854775809]",
    "[1.5,1.50,-0.001,999999999.0,99999999.9,9.99999999,123456789012345678.0,0.000000000000000001]",
    f"[{_NINES},-{_NINES},0.{_NINES},1.{'0' * 37},{'0.' + '0' * 37 + '1'}]",
    f"[{_NINES}9]",
    f"[0.{_NINES}9]",
    f"[1.{'0' * 38}]",
    f"[1.{'0' * 39}]",
    "[1e0,1E2,1e+2,1e-7,1.5e300,5e-324,1.7976931348623157e308,123456789e-3]",
    "[1e400]",
    "[1e-400]",
    "[0e999999999999]",
    "[1e999999999999]",
    "[1.00000000000000001e0]",
    f"[1{'0' * 60}]",
    f"[1{'0' * 400}]",
    f"[0.5{'0' * 60}]",
    f"[{'9' * 5_000}]",
    "[01]",
    "[1.]",
    "[.5]",
    "[+1]",
    "[-]",
    "[1e]",
    "[NaN]",
    "[Infinity]",
    "[-Infinity]",
    "[nul]",
    "[nulll]",
    "[True]",
    "[1,]",
    "[,1]",
    "[1 2]",
    "[1]]",
    "[[1]",
    "[1}",
    '{"a":1]',
    '{"a":1,}',
    '{"a"}',
    '{"a" 1,"b":2}',
    '{"a","b":1}',
    '{"a" "b":1}',
    '{["a"]:1}',
    '{"a" 1}',
    '{"a":}',
    "{a:1}",
    "{1:2}",
    '{"a":"b":1}',
    '["a":1]',
    '{"a":1,"a":1}',
    r'{"a":1,"\u0061":1}',
    '[{"a":1,"b":2,"a":3}]',
    '["a',
    '["a]',
    r'["a\"]',
    r'["\x41"]',
    r'["\u12"]',
    r'["\u12G4"]',
    r'["\ud800"]',
    r'["\ud800x"]',
    r'["\ud800\u0041"]',
    r'["\udc00"]',
    r'{"\ud800":1}',
    '["\x00"]',
    '["\x1f"]',
    '["\t"]',
    "1",
    '"a"',
    "null",
    "",
    "{",
    "[",
    "}",
    '"[1]"',
    "[1]\x00",
    "[1]\ufeff",
    "\ufeff[1]",
)


def broken(seed: int, number: int) -> list[str]:
    """Such texts with a few characters changed, added or left out."""
    chance = random.Random(seed)
    short = [text for text in VARIANT_TEXTS if 2 < len(text) < 200]
    made = []
    for _ in range(number):
        text = list(chance.choice(short))
        for _ in range(chance.randrange(1, 4)):
            at = chance.randrange(len(text))
            new = chance.choice('{}[]:,"\\0123456789eE+-.ntf abu\u00e9')
            text[at : at + chance.randrange(2)] = [new] * chance.randrange(3)
            text = text or ["x"]
        made.append("".join(text))
    return made
