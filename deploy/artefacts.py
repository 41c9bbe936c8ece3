"""What is uploaded before a deployment: files whose keys hold their fingerprints, so that none is ever overwritten."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from compactor.core.errors import SettingsError
from deploy.imported_modules import ROOT
from deploy.native_wheel import WHEELS
from deploy.package import DIST, FUNCTIONS_ZIP

GLUE_ENVIRONMENT = "glue-environment.tar.gz"
MODULES = "JobModules"


@dataclass(frozen=True, slots=True)
class Artefact:
    """One file.

    Attributes:
        parameter: The parameter of the template that names its key, alone or among others.
        path: The file.
        key: Its key in the bucket of artefacts.
        size_bytes: Its size.
        sha256: Its fingerprint.
    """

    parameter: str
    path: Path
    key: str
    size_bytes: int
    sha256: str


def artefacts(environment: str, settings_file: Path, glue_version: str, dist: Path = DIST) -> list[Artefact]:
    """The artefacts of a deployment.

    Args:
        environment: Whose; two may share a bucket.
        settings_file: Its settings.
        glue_version: Which decides what the job's dependencies come in.
        dist: Where `make package` puts things.

    Raises:
        SettingsError: With each file that is missing.
    """
    found: list[Artefact] = []
    faults: list[str] = []
    for parameter, path, suffix, expected in _wanted(settings_file, glue_version, dist):
        if path.is_file():
            found.append(_artefact(environment, parameter, path, suffix))
        else:
            faults.append(f"{path}: there is no such file -> expected {expected}")
    if faults:
        raise SettingsError(faults)
    return found


def artefact_key(environment: str, parameter: str, sha256: str, suffix: str) -> str:
    """The key of an artefact, in a folder that the roles of who needs it may read."""
    kind = "job" if parameter.startswith("Job") else parameter.removesuffix("Key").lower()
    # pip looks at the name of a wheel, which therefore stays, behind the fingerprint.
    return f"{environment}/{kind}/{sha256[:32]}{'/' if suffix.endswith('.whl') else '.'}{suffix}"


def _wanted(settings_file: Path, glue_version: str, dist: Path) -> Iterator[tuple[str, Path, str, str]]:
    wheel = next(iter(sorted(dist.glob("compactor-*.whl"))), dist / "compactor.whl")
    yield "SettingsKey", settings_file, "toml", "the settings"
    yield "FunctionsKey", dist / FUNCTIONS_ZIP, "zip", "the functions: make package"
    yield "JobScriptKey", ROOT / "glue_entry.py", "py", "the job"
    # A wheel by another name: Spark puts nothing but .zip, .egg and .jar on the path of its executors.
    yield "JobPackageKey", wheel, "zip", "the package: make package"
    if glue_version == "5.1":
        for native in sorted(dist.glob(WHEELS)):
            yield MODULES, native, native.name, "the native engine: make package"
    else:
        yield (
            "JobEnvironmentKey",
            dist / GLUE_ENVIRONMENT,
            "tar.gz",
            "the job's environment: make glue-environment",
        )


def _artefact(environment: str, parameter: str, path: Path, suffix: str) -> Artefact:
    with path.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    key = artefact_key(environment, parameter, sha256, suffix)
    return Artefact(parameter, path, key, path.stat().st_size, sha256)
