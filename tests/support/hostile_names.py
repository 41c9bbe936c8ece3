"""Names of files and folders as a hostile producer gives them, and what has to hold for everything that shows them."""

import re
import subprocess
import unicodedata
from pathlib import Path

FORGED = "compactor: all is well", "next: compactor evil"

NAMES = {
    "escape": b"\x1b[2J\x1b[31mred",
    "title": b"\x1b]0;owned\x07",
    "hyperlink": b"\x1b]8;;http:x\x1b\\",
    "c1": "\x9b31m\x9dx\x9c".encode(),
    "delete": b"a\x7f\x08\x08b",
    "bidi": "\u202egnp.x\u202c".encode(),
    "isolate": "\u2066x\u2069\u200f".encode(),
    "line feed": b"x\nnext: compactor evil\ny",
    "line feed at the end": b"x\n",
    "carriage return": b"x\rcompactor: all is well",
    "separators": "a\u2028next: compactor evil\u2029b\x85c".encode(),
    "invisible": "a\u200bb\ufeffc\U000e0041".encode(),
    "command": b"$(touch pwned)",
    "back-quotes": b"`touch pwned`",
    "several commands": b"a; touch pwned & touch pwned | touch pwned",
    "quotes": b'it\'s "q" \\ !1',
    "spaces": b"  two  spaces ",
    "option": b"--dry-run",
    "patterns": b"*?[a]{b,c}~",
    "page": b"<img src=x onerror=alert(1)>",
    "markup": b"[bold red]x[",
    "format": b"%s%n{0}{x}",
    "ordinary": "Köln 日本 😀".encode(),
    "217 characters": b"n" * 217,
    "255 characters": b"m" * 255,
}
"""Text in UTF-8, as bytes. All can be folders and files of one disk."""

NOT_TEXT = {"latin-1": b"K\xf6ln", "bytes": b"\xff\xfe\x1b]0;x\x07$(touch pwned)"}
"""Names that are not UTF-8, which no manifest can name."""

_STYLE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")  # colours and movements of the cursor, for a terminal
_DANGEROUS = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
_STUB = """#!/bin/sh
{ printf '%s\\0' "${0##*/}"; for each; do printf '%s\\0' "$each"; done; } >>"$RECORD"
"""


def check_shown(data: bytes, *, on_terminal: bool = False) -> str:
    """Check that no dangerous character is in some output, and that no line is forged; returns the text."""
    text = data.decode()
    plain = _STYLE.sub("", text).replace("\r", "") if on_terminal else text
    found = {each for each in plain if unicodedata.category(each) in _DANGEROUS} - {"\n"}
    assert not found, [line for line in plain.split("\n") if found & set(line)]
    assert not [line for line in plain.split("\n") if line.strip().startswith(FORGED)]
    return plain


def passed(command: str, folder: Path) -> list[bytes]:
    """Give a suggested command to a shell; returns its arguments, after checking that nothing else was run."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("compactor", "duckdb"):
        (folder / name).write_text(_STUB)
        (folder / name).chmod(0o755)
    record, work = folder / "record", folder / "work"
    work.mkdir(exist_ok=True)
    record.write_bytes(b"")
    env = {"PATH": f"{folder}:/usr/bin:/bin", "RECORD": str(record)}
    done = subprocess.run(["sh", "-c", command], env=env, cwd=work, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr, list(work.iterdir())) == (0, b"", b"", []), command
    return record.read_bytes().split(b"\0")[:-1]
