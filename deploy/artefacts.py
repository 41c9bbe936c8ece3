"""The files that a deployment uploads. Their keys contain their SHA-256, so none is ever overwritten."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from compactor.core.errors import SettingsError
from deploy import ROOT
from deploy.package import FUNCTIONS_ZIP, JOB_ZIP
from deploy.wheel import WHEELS

GLUE_ENVIRONMENT = "glue-environment.tar.gz"
MODULES = "JobModules"


@dataclass(frozen=True, slots=True)
class Artefact:
    """A file to upload.

    Attributes:
        parameter: The template's parameter that contains the key.
        key: The key in the artefact bucket.
        sha256: Hexadecimal.
    """

    parameter: str
    path: Path
    key: str
    size_bytes: int
    sha256: str


def artefacts(environment: str, settings_file: Path, glue_version: str, dist: Path) -> list[Artefact]:
    """The artefacts of a deployment, of which `make package` has written some to `dist`.

    Keys begin with the environment, because environments may share a bucket. Glue 5.1 takes wheels, later versions an
    archive of a virtual environment.

    Raises:
        SettingsError: With every file that is missing.
    """
    wanted = list(_wanted(settings_file, glue_version, dist))
    faults = [f"{path}: no such file -> expected {expected}" for _, path, _, expected in wanted if not path.is_file()]
    if faults:
        raise SettingsError(faults)
    found: list[Artefact] = []
    for parameter, path, suffix, _ in wanted:
        with path.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        key = artefact_key(environment, parameter, sha256, suffix)
        found.append(Artefact(parameter, path, key, path.stat().st_size, sha256))
    return found


def artefact_key(environment: str, parameter: str, sha256: str, suffix: str) -> str:
    """The key of an artefact, in one of the folders that the template lets roles read."""
    kind = "job" if parameter.startswith("Job") else parameter.removesuffix("Key").lower()
    # pip needs the name of a wheel, so a wheel keeps its name below a folder named by its SHA-256.
    return f"{environment}/{kind}/{sha256[:32]}{'/' if suffix.endswith('.whl') else '.'}{suffix}"


def _wanted(settings_file: Path, glue_version: str, dist: Path) -> Iterator[tuple[str, Path, str, str]]:
    yield "SettingsKey", settings_file, "toml", "the settings"
    yield "FunctionsKey", dist / FUNCTIONS_ZIP, "zip", "the functions: make package"
    yield "JobScriptKey", ROOT / "glue_entry.py", "py", "the job"
    yield "JobPackageKey", dist / JOB_ZIP, "zip", "the package: make package"
    if glue_version == "5.1":
        for wheel in sorted(dist.glob(WHEELS)):
            yield MODULES, wheel, wheel.name, "the package with the native engine: make package"
    else:
        yield "JobEnvironmentKey", dist / GLUE_ENVIRONMENT, "tar.gz", "the job's environment: make glue-environment"
