"""The files that a deployment uploads. Their keys contain their SHA-256, so none is ever overwritten."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from compactor.core.errors import SettingsError
from deploy import ROOT
from deploy.job_wheels import JOB_WHEELS
from deploy.package import FUNCTIONS_ZIP, JOB_ZIP
from deploy.wheel import WHEELS, built_wheels


@dataclass(frozen=True, slots=True)
class Artefact:
    """A file to upload.

    Attributes:
        parameter: The template's parameter that contains the key; empty for a wheel, which the template lists.
        key: The key in the artefact bucket.
        sha256: Hexadecimal.
    """

    parameter: str
    path: Path
    key: str
    size_bytes: int
    sha256: str

    @property
    def is_wheel(self) -> bool:
        """Whether pip installs it on Glue."""
        return not self.parameter


def artefacts(environment: str, settings_file: Path, glue_version: str, dist: Path) -> list[Artefact]:
    """The artefacts of a deployment, of which `make package` has written some to `dist`.

    Keys begin with the environment, because environments may share a bucket. Glue installs the wheels, of which 5.1
    gets only the package's own.

    Raises:
        SettingsError: With every file that is missing.
    """
    wanted = list(_wanted(settings_file, glue_version, dist))
    faults = [f"{path}: no such file -> expected {expected}" for _, path, _, expected in wanted if not path.is_file()]
    if faults:
        raise SettingsError(faults)
    return [_artefact(environment, parameter, path, suffix) for parameter, path, suffix, _ in wanted]


def settings_artefact(environment: str, settings_file: Path) -> Artefact:
    """The only artefact of a deployment that changes no code."""
    return _artefact(environment, "SettingsKey", settings_file, "toml")


def _artefact(environment: str, parameter: str, path: Path, suffix: str) -> Artefact:
    with path.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    return Artefact(parameter, path, artefact_key(environment, parameter, sha256, suffix), path.stat().st_size, sha256)


def artefact_key(environment: str, parameter: str, sha256: str, suffix: str) -> str:
    """The key of an artefact, in one of the folders that the template lets roles read."""
    if suffix.endswith(".whl"):
        return f"{environment}/job/{sha256[:32]}/{suffix}"  # pip needs the name of a wheel
    kind = "job" if parameter.startswith("Job") else parameter.removesuffix("Key").lower()
    return f"{environment}/{kind}/{sha256[:32]}.{suffix}"


def _wanted(settings_file: Path, glue_version: str, dist: Path) -> Iterator[tuple[str, Path, str, str]]:
    yield "SettingsKey", settings_file, "toml", "the settings"
    yield "FunctionsKey", dist / FUNCTIONS_ZIP, "zip", "the functions: make package"
    yield "JobScriptKey", ROOT / "glue_entry.py", "py", "the job"
    yield "JobPackageKey", dist / JOB_ZIP, "zip", "the package: make package"
    own = built_wheels(dist)
    others = [] if glue_version == "5.1" else sorted((dist / JOB_WHEELS.name).glob("*.whl"))
    for wheel in (*own, *others):
        yield "", wheel, wheel.name, "a wheel of the job"
    if glue_version != "5.1":
        for wheels, folder, expected in (
            (own, dist / WHEELS, "the package: make package"),
            (others, dist / JOB_WHEELS.name / "*.whl", "the packages of the job: make glue-environment"),
        ):
            if not wheels:
                yield "", folder, "", expected
