"""What `input.grok` may say."""

from typing import Any

import pytest

from compactor.core.errors import SettingsError
from compactor.settings.grok import GrokPattern
from compactor.settings.settings import Settings, parse_settings

PATHS = {"paths": {"manifests": "/w/manifests", "output": "/w/output", "state": "/w/state"}}


def parsed(**given: Any) -> Settings:
    return parse_settings({**PATHS, "input": {"allowed_prefixes": ["/raw"], **given}})


def test_a_pattern_with_definitions() -> None:
    table = {"pattern": "%{A:a}", "patterns": {"A": "a+"}, "max_steps": 1_000}
    assert parsed(format="grok", grok=table).grok == GrokPattern("%{A:a}", {"A": "a+"}, 1_000)
    assert parsed(format="grok", grok={"pattern": "%{A:a}"}).grok == GrokPattern("%{A:a}")
    assert parsed().grok is None


def test_a_variable_may_have_the_table() -> None:
    env = {"COMPACTOR_INPUT__FORMAT": "grok", "COMPACTOR_INPUT__GROK": '{"pattern": "%{A:a}"}'}
    settings = parse_settings({**PATHS, "input": {"allowed_prefixes": ["/raw"]}}, env)
    assert settings.grok == GrokPattern("%{A:a}")


def test_a_stream_has_a_pattern_of_its_own() -> None:
    text = {"allowed_prefixes": ["/raw/text"], "format": "grok", "grok": {"pattern": "%{A:a}"}}
    streams = [{"name": "text", "input": text}, {"name": "json", "input": {"allowed_prefixes": ["/raw/json"]}}]
    settings = parse_settings({**PATHS, "input": {"allowed_prefixes": ["/raw"]}, "streams": streams})
    assert settings.of_stream("text").grok == GrokPattern("%{A:a}")
    assert settings.of_stream("json").grok is None


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        (
            {"format": "grok"},
            'input.format: "grok" without a pattern -> expected input.grok (a table with pattern = "%{NAME:key} ..."',
        ),
        (
            {"grok": {"pattern": "x"}},
            'input.format: "ndjson" -> expected "grok" (--format grok), because there is a pattern',
        ),
        ({"format": "grok", "grok": {"patern": "x"}}, "pattern, patterns and max_steps, not patern"),
        ({"format": "grok", "grok": {"max_steps": 5_000}}, 'expected pattern = "%{NAME:key} ..." in it'),
        (
            {"format": "grok", "grok": {"pattern": "x", "patterns": {"A": 1}}},
            "expected patterns to be a table of texts",
        ),
        ({"format": "grok", "grok": {"pattern": "x", "patterns": {"A-B": "x"}}}, "names with letters, digits and '_'"),
        ({"format": "grok", "grok": {"pattern": "x", "max_steps": 10}}, "max_steps to be a number from 1,000"),
        ({"format": "grok", "grok": {"pattern": "x", "max_steps": True}}, "max_steps to be a number from 1,000"),
        ({"format": "grok", "grok": "x"}, "expected a table"),
    ],
)
def test_faults(given: dict[str, Any], fault: str) -> None:
    with pytest.raises(SettingsError) as raised:
        parsed(**given)
    assert fault in str(raised.value)
