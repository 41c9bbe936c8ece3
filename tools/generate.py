"""Writes what is generated from the code: `python -m tools.generate` (`make generate`).

Tables of documents, comments of settings files, the manual page and the JSON Schemas. A file is written only if it is
out of date.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from tools import events_table, json_schemas, settings_reference
from tools.man_page import man_page

ROOT = Path(__file__).resolve().parents[1]

RENEWED: Mapping[str, Callable[[str], str]] = {
    "config/*.toml": settings_reference.with_comments,
    "docs/compactor.1": lambda _: man_page(),
    "docs/reference-logs.md": events_table.with_tables,
    "docs/reference-settings.md": settings_reference.with_reference,
}
"""The function that makes the text of today from the text of a file, by a pattern of files."""


def out_of_date() -> Iterator[tuple[Path, str]]:
    """Yield each generated file that is not what the code says, with the text that it should have."""
    files = [(path, renew(path.read_text())) for pattern, renew in RENEWED.items() for path in ROOT.glob(pattern)]
    files += [
        (json_schemas.file_of(name), json_schemas.text_of(json_schemas.schema_of(name))) for name in json_schemas.NAMES
    ]
    yield from ((path, text) for path, text in files if not path.exists() or path.read_text() != text)


if __name__ == "__main__":
    for path, text in out_of_date():
        path.write_text(text)
        print(path.relative_to(ROOT))  # noqa: T201
