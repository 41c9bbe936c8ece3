"""Writes the bills of materials (CycloneDX): `python -m tools.sbom dist`, with the packages of locks/release.txt.

One is of the Python packages that `pip install` brings, one of the crates in the native engine. Equal locks make equal
files: they hold no time and no serial number.
"""

import json
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path
from typing import Any

from deploy import ROOT
from deploy.locks import lock_file
from tools.notice import Crate, linked_crates

PYTHON_FILE, RUST_FILE = "sbom-python.cdx.json", "sbom-rust.cdx.json"
SPEC = "1.6"

_CYCLONEDX = ("cyclonedx_py", "requirements", "--spec-version", SPEC, "--output-reproducible", "--of", "JSON")


def python_bill() -> str:
    """The packages of the base installation, with their hashes."""
    command = (sys.executable, "-m", *_CYCLONEDX, "--pyproject", "pyproject.toml", str(lock_file("base")))
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout  # noqa: S603


def rust_bill(version: str) -> str:
    """The crates of the native engine, with licences and the hashes of Cargo.lock."""
    packages = tomllib.loads((ROOT / "native" / "Cargo.lock").read_text())["package"]
    hashes = {(each["name"], each["version"]): each["checksum"] for each in packages if "checksum" in each}
    document = {
        "$schema": f"http://cyclonedx.org/schema/bom-{SPEC}.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": SPEC,
        "version": 1,
        "metadata": {"component": {"type": "library", "name": "compactor-native", "version": version}},
        "components": [_component(each, hashes[each.name, each.version]) for each in linked_crates()],
    }
    return json.dumps(document, indent=2) + "\n"


def _component(crate: Crate, sha256: str) -> dict[str, Any]:
    reference = f"pkg:cargo/{crate.name}@{crate.version}"
    return {
        "type": "library",
        "bom-ref": reference,
        "name": crate.name,
        "version": crate.version,
        "purl": reference,
        "hashes": [{"alg": "SHA-256", "content": sha256}],
        "licenses": [{"expression": crate.licence.replace("/", " OR ")}],
    }


def fault_of(document: str) -> str:
    """What the schema of CycloneDX finds wrong with a document; empty if nothing."""
    validator: Any = import_module("cyclonedx.validation.json").JsonStrictValidator
    schema: Any = import_module("cyclonedx.schema").SchemaVersion
    return str(validator(schema.from_version(SPEC)).validate_str(document) or "")


def main(folder: Path) -> int:
    """Write both; returns 1 if one does not fit the schema."""
    folder.mkdir(exist_ok=True)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for name, document in ((PYTHON_FILE, python_bill()), (RUST_FILE, rust_bill(project["version"]))):
        if fault := fault_of(document):
            sys.stderr.write(f"{name}: {fault}\n")
            return 1
        (folder / name).write_text(document)
        sys.stdout.write(f"{folder / name}: {len(json.loads(document)['components'])} components\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
