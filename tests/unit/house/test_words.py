"""Words that the project has given up for those of the field are in none of its files."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.housekeeping import ROOT

RETIRED = {
    r"presence|signs?[ _-]of[ _-]life|run_?beat|beat_at": "heartbeat",
    r"set(?:s|ting)?[ _-]aside": "a quarantined file, a dead letter, a rejected line",
    r"put(?:s|ting)?[ _-]back": "redriven",
    r"(?:un)?tied|ties|tying": "bound",
    r"void(?:s|ed|ing)?": "revoke, revoked",
    r"audit(?:s|ed|or|ors|ing)?": "verify, verification, file report",
    r"look_?ahead|(?<!_)ahead(?=\()": "map_ordered",
    r"wordings?": "formatting",
    r"(?:compactor|ops|unit)[./](?:audit|tracing|cleaning)": "verify, trace, retention",
    r"(?:Build|Redrive)?Step\.[A-Z]\w+|(?:on|ignore)_(?:build_|redrive_)?step": "CrashPoint",
    r"(?-i:Standing)": "Health, ClaimState, FileState",
    r"(?-i:Gatherings?)|gatherers?": "Partitioning, read_figures",
    r"(?:redrive)?trails?": "RedriveLog",
    r"drafters?|surveyors?": "RedrivePlanner, find_redrivable",
    r"whereabouts": "TraceState",
    r"surroundings": "environment",
    r"is_well|hand(?:s|ed)? on|hand_on|spoilt": "is_healthy, flush, needs_rescan",
    r"mend(?:s|ed|ing)?": "fix",
    r"who(?:so)?ever|whomever": "the name of the role",
    r"nobody|somebody|anybody": "no one, or the name of the role",
    r"a (?:second |last |first )?look(?!-)": "a check",
    r"likewise\.": "shape, unit and meaning, or nothing",
    r"StreamsApp|(?-i:\w*Components)": "App, or a function that takes one",
    r"make_site|(?-i:Site)|new_world|twins?": "workspace, harness, fake",
}
"""Patterns of whole words, each with what stands in its place."""

PLACES = (
    *(
        "compactor",
        "lambdas",
        "tools",
        "deploy",
        "bench",
        "tests",
        "docs",
        "examples",
        "config",
        "native",
        "glue_entry.py",
    ),
    *("README.md", "CONTRIBUTING.md", "Makefile", "pyproject.toml"),
)
SUFFIXES = {".py", ".md", ".toml", ".yaml", ".yml", ".json", ".txt", ".rs", ".sh", ".html", ".css", ".js", ".j2", ""}
ALLOWED = {
    ("tests/unit/house/test_words.py", ""): "the list itself",
    ("tests/support/raw_headers.py", "void"): "a type of C",
}
"""Files with a word, or "" for any of the list, that may hold it, and why."""


def tracked_files() -> Iterator[Path]:
    """The files of the project that are text."""
    listed = subprocess.run(["git", "ls-files", *PLACES], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in listed.splitlines():
        path = ROOT / name
        if path.suffix in SUFFIXES and path.is_file():
            yield path


def uses(name: str, text: str) -> Iterator[str]:
    """Where a text has retired words, as `file:line word -> what to say`."""
    for pattern, instead in RETIRED.items():
        for found in re.finditer(rf"(?<![A-Za-z0-9])(?:{pattern})(?![A-Za-z0-9])", text, re.IGNORECASE):
            word = found[0]
            if (name, "") not in ALLOWED and (name, word) not in ALLOWED:
                yield f"{name}:{text.count(chr(10), 0, found.start()) + 1} {word} -> {instead}"


def test_retired_words_are_gone() -> None:
    """No name, comment, message or sentence has one of them, nor has the name of a file."""
    found = [use for path in tracked_files() for use in uses(path.relative_to(ROOT).as_posix(), path.read_text())]
    found += [use for path in tracked_files() for use in uses(f"{path.relative_to(ROOT)}:", path.stem)]
    assert found == [], f"{len(found)} retired words:\n" + "\n".join(found)


@pytest.mark.parametrize(
    "text",
    [
        "a file is set aside",
        "def put_back():",
        "if self._tied:",
        "test_a_void_manifest",
        "first mend the region",
        "Whoever reads it",
        "state: Likewise.",
        "signs of life",
        "BuildStep.SEALED",
        "RedriveTrail(store)",
        "takes a look",
        "ahead(items)",
    ],
)
def test_a_retired_word_is_found(text: str) -> None:
    """In prose and in names."""
    assert len(list(uses("here", text))) == 1


@pytest.mark.parametrize("text", ["properties", "avoid a step", "amended", "is set beside it", "a looking glass"])
def test_other_words_stay(text: str) -> None:
    """Only whole words count."""
    assert list(uses("here", text)) == []
