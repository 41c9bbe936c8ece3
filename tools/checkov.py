"""Runs checkov on the templates: `python -m tools.checkov` by the Python of `.tools/checkov`.

Findings have to be those of `deploy/checkov.toml`, which has the reason of each.
"""

import json
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
TEMPLATES = ("deploy/template.yaml", "deploy/input_account.yaml", "deploy/runtime.yaml")
ACCEPTED = ROOT / "deploy" / "checkov.toml"
_OPTIONS = (
    "--framework",
    "cloudformation",
    "--skip-download",
    "--compact",
    "--quiet",
    "--soft-fail",
    "--output",
    "json",
)

Found = set[tuple[str, str]]
"""Checks with the resources that do not pass them."""


def main() -> int:
    """Compare what checkov finds with what is accepted; the exit code."""
    program = Path(sys.executable).with_name("checkov")
    named = (word for template in TEMPLATES for word in ("--file", template))
    done = subprocess.run((str(program), *named, *_OPTIONS), cwd=ROOT, check=False, capture_output=True, text=True)  # noqa: S603
    try:
        report = json.loads(done.stdout)
    except ValueError:
        sys.stderr.write(done.stderr)
        return 2
    lines = [*differences(found_in(report), accepted())]
    sys.stdout.write("\n".join([*lines, f"checkov: {len(lines)} differences from {ACCEPTED.relative_to(ROOT)}", ""]))
    return 1 if lines else 0


def found_in(report: Any) -> Found:
    """What a report of checkov found. It must have read all resources."""
    parts = report if isinstance(report, list) else [report]
    if any(part["summary"]["parsing_errors"] or not part["summary"]["passed"] for part in parts):
        raise ValueError("checkov could not read the templates")
    failed = (each for part in parts for each in part["results"]["failed_checks"])
    return {(each["check_id"], each["resource"].rpartition(".")[2]) for each in failed}


def accepted() -> Mapping[str, Any]:
    """The accepted findings by check."""
    return tomllib.loads(ACCEPTED.read_text())


def differences(found: Found, table: Mapping[str, Any]) -> Iterator[str]:
    """A line for every finding that is not accepted, and for every accepted one that is not found."""
    known = {(check, resource) for check, entry in table.items() for resource in entry["resources"]}
    yield from (f"{check} {resource}: found" for check, resource in sorted(found - known))
    yield from (f"{check} {resource}: accepted, but no longer found" for check, resource in sorted(known - found))


if __name__ == "__main__":
    sys.exit(main())
