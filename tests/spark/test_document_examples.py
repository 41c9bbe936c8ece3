"""Examples for Spark in the documents run on a lake made without it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.document_lake import make_lake
from tests.support.documents import blocks_of, check_printed, documents, open_database, run


@pytest.mark.parametrize(
    "path", [each for each in documents() if blocks_of(each, "python spark")], ids=lambda path: path.name
)
def test_examples_run(path: Path, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They work in the shared session, whose JVM stays in the folder that it started in, and print what is said."""
    make_lake(tmp_path)
    monkeypatch.chdir(tmp_path)
    with open_database() as database:
        for block in blocks_of(path, "python spark"):
            here = replace(block, text=block.text.replace('"data/local/', f'"{tmp_path}/data/local/'))
            check_printed(here, run(here, {"spark": spark}, database))
