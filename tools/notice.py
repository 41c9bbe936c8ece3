"""The licences of what the product is made of: `python -m tools.notice NOTICE` writes them, from the lock files.

It needs cargo, and the packages of the developer's set-up, which say their licence themselves.
"""

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from deploy import ROOT
from deploy.locks import locked

CRATE = ROOT / "native" / "Cargo.toml"
TARGET = "x86_64-unknown-linux-gnu"

_HEAD = """ndjson-compactor
Copyright The ndjson-compactor authors

Licensed under the Apache License, Version 2.0; see LICENSE.
"""
_OUR_LICENCE = "Apache-2.0"
_TEXTS = ("LICENSE*", "LICENCE*", "COPYING*", "COPYRIGHT*", "NOTICE*", "zstd/LICENSE")
_OWN = "compactor-native"
_MOST_CHARACTERS = 60  # of a licence in metadata; some packages put the whole text there


@dataclass(frozen=True, slots=True)
class Crate:
    """A crate that the native engine is linked with."""

    name: str
    version: str
    licence: str
    folder: Path

    def texts(self) -> Iterator[tuple[str, str]]:
        """The names and texts that have to go with the crate. Under our own licence only its notices have to."""
        is_ours = _OUR_LICENCE in self.licence.replace("/", " OR ").split(" OR ")
        for pattern in _TEXTS:
            for path in sorted(self.folder.glob(pattern)):
                if path.is_file() and (not is_ours or path.name.startswith("NOTICE")):
                    yield path.relative_to(self.folder).as_posix(), path.read_text().strip()


def notice() -> str:
    """The whole document."""
    crates = linked_crates()
    base, job = locked("base"), locked("job")
    others = {name: version for name, version in locked("development").items() if name not in base | job}
    parts = [
        _HEAD,
        *_table(
            "The native engine in the wheel is linked with Rust's own library (MIT OR Apache-2.0) and:",
            map(_crate_line, crates),
        ),
        *_table("`pip install ndjson-compactor` also installs (locks/base.txt):", _package_lines(base)),
        *_table(
            "The job on AWS Glue, beyond these (locks/job.txt):",
            _package_lines({name: version for name, version in job.items() if name not in base}),
        ),
        *_table(
            "Other extras, and tools of development, in no artefact (locks/development.txt):", _package_lines(others)
        ),
        *_licence_texts(crates),
    ]
    return "\n".join(parts).rstrip() + "\n"


def linked_crates() -> list[Crate]:
    """The crates of the native engine on Linux, without those that only its build uses; by name."""
    options = ("--locked", "--manifest-path", str(CRATE))
    metadata = json.loads(_cargo("metadata", *options, "--format-version", "1"))
    known = {(each["name"], each["version"]): each for each in metadata["packages"]}
    tree = ("--edges", "normal,no-proc-macro", "--target", TARGET, "--prefix", "none", "--format", "{p}")
    lines = {tuple(line.split()[:2]) for line in _cargo("tree", *options, *tree).splitlines()}
    found = (known[name, version.removeprefix("v")] for name, version in sorted(lines) if name != _OWN)
    return [
        Crate(each["name"], each["version"], each["license"] or "see its text", Path(each["manifest_path"]).parent)
        for each in found
    ]


def _cargo(*arguments: str) -> str:
    return subprocess.run(("cargo", *arguments), capture_output=True, text=True, check=True).stdout  # noqa: S603, S607


def _crate_line(crate: Crate) -> str:
    return f"  {crate.name} {crate.version}  {crate.licence}"


def _table(head: str, lines: Iterable[str]) -> list[str]:
    return ["", head, "", *lines]


def _package_lines(versions: Mapping[str, str]) -> Iterator[str]:
    for name, version in sorted(versions.items()):
        yield f"  {name} {version}  {_package_licence(name)}"


def _package_licence(name: str) -> str:
    """What a package says of its licence: an SPDX expression, a short text, or its classifiers."""
    try:
        metadata: Any = distribution(name).metadata
    except PackageNotFoundError:  # of another system
        return "not installed on Linux"
    for field in ("License-Expression", "License"):
        text = " ".join((metadata.get(field) or "").split())
        if text and len(text) <= _MOST_CHARACTERS:
            return text
    classifiers = [each for each in metadata.get_all("Classifier") or () if each.startswith("License ::")]
    return "; ".join(each.rpartition(" :: ")[2] for each in classifiers) or "see its own licence file"


def _licence_texts(crates: Iterable[Crate]) -> Iterator[str]:
    """The texts that have to go with the crates, each once, with the crates that it belongs to."""
    owners: dict[str, list[str]] = {}
    for crate in crates:
        for name, text in crate.texts():
            owners.setdefault(text, []).append(f"{crate.name} {crate.version} ({name})")
    for text, names in owners.items():
        yield "\n".join(["", "-" * 80, *names, "-" * 80, "", text])


if __name__ == "__main__":
    for place in sys.argv[1:]:
        Path(place).write_text(notice())
