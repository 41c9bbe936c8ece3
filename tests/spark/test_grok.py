"""Lines of text by a pattern: both engines make the same rows and rejects of them."""

import gzip
import json
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from compactor.core.crash_points import ignore_crash_point
from tests.support.engine_workspace import EngineWorkspace, NewWorkspace, engine_workspace
from tests.support.extras import NATIVE

NATIVE.need()

PATTERN = r'^(?<id>\d+) %{WORD:verb}(?: "%{DATA:text}")?(?:: %{NUMBER:size:float})?$'
TEXT = st.text(alphabet=st.sampled_from('ab1" \\\t\r\x00\x01é\U0001f600'), max_size=8)
GOOD = st.builds(
    lambda verb, text, size: f"{verb}{text}{size}",
    st.sampled_from(["GET", "PUT", "é", "PUT!"]),
    TEXT.map(lambda text: f' "{text}"') | st.just(""),
    st.sampled_from([": 1", ": 2.50", ": -0", ": x", ""]),
)
OTHER = st.sampled_from([b"", b" \t", b"?", b"\xff", b"1", b'{"id": 1}', b"x" * 200]) | TEXT.map(str.encode)


def read(workspace: EngineWorkspace, name: str, data: bytes) -> tuple[list[str], list[tuple[object, ...]]]:
    """The records and the rejects that an engine makes of a file, as text that can be compared."""
    found = workspace.compact({name: data}, name)
    records = sorted(json.dumps(record, sort_keys=True) for record in found.records)
    return records, [(row["line_number"], row["byte_offset"], row["reason"], row["raw"]) for row in found.rejects]


@pytest.mark.parametrize("engine", ["spark"])  # beside the native one
def test_the_engines_agree(new_workspace: NewWorkspace, tmp_path: Path) -> None:
    """About any lines, and both with what `verify --deep` reads of the input."""
    text = {"format": "grok", "grok": {"pattern": PATTERN}, "max_line_bytes": 150}
    spark, beside = new_workspace(input=text), {**text, "allowed_prefixes": [f"{tmp_path}/native/raw"]}
    native = engine_workspace(f"{tmp_path}/native", "native", ignore_crash_point, 1.0, {"input": beside})
    runs = count()

    @seed(1)
    @settings(
        max_examples=2, phases=[Phase.generate], deadline=None, suppress_health_check=list(HealthCheck), database=None
    )
    @given(st.lists(GOOD.map(str.encode) | OTHER, min_size=30, max_size=60))
    def agree(lines: list[bytes]) -> None:
        name = f"m{next(runs)}"
        data = b"\n".join(b"%d %s" % (at, line) if at % 4 else line for at, line in enumerate(lines))
        ours, theirs = read(spark, name, data), read(native, name, data)
        assert ours == theirs

    agree()


def test_text_on_executors(new_workspace: NewWorkspace) -> None:
    """Compressed, with typed columns, and with lines that are no records between the others."""
    workspace = new_workspace(input={"format": "grok", "grok": {"pattern": "%{WORD:verb} %{NUMBER:size:int}"}})
    found = workspace.compact({"a.log.gz": gzip.compress(b"GET 1\n\nPUT\nPUT x\n\xff\nPUT 2")})
    assert found.by("verb") == {"GET": {"verb": "GET", "size": 1}, "PUT": {"verb": "PUT", "size": 2}}
    reasons = [(row["line_number"], row["reason"], row["raw"]) for row in found.rejects]
    assert reasons == [(3, "no_match", b"PUT"), (4, "no_match", b"PUT x"), (5, "invalid_utf8", b"\xff")]
