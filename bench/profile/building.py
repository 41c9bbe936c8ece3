"""Builds the kernel with the names of its functions, and the sampler, in folders of their own.

The compiler gets the options of the kernel that users have, except that names stay, which changes no instruction.
"""

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from bench.guard.programs import ROOT

SAMPLE_MICROS = 1_000
"""CPU time between two samples. The system may round it up: to 4,000 where its clock has 250 ticks a second."""

_TOOLS = ("cargo", "cc", "addr2line", "nm")
_CARGO = ("cargo", "build", "--release", "--locked", "--lib", "--features", "extension-module")
_NAMED = {"CARGO_PROFILE_RELEASE_DEBUG": "1", "CARGO_PROFILE_RELEASE_STRIP": "none"}


@dataclass(frozen=True, slots=True)
class Built:
    """What was built.

    Attributes:
        kernel: The kernel with names, alone in its folder.
        sampler: To be preloaded.
    """

    kernel: Path
    sampler: Path

    def variables(self, samples: Path | None = None) -> dict[str, str]:
        """The variables of a process that runs this kernel, and is sampled into a folder unless that is None."""
        found = {"PYTHONPATH": f"{self.kernel.parent}{os.pathsep}{ROOT}"}
        if samples is not None:
            found |= {"LD_PRELOAD": str(self.sampler), "SAMPLES": str(samples), "SAMPLE_MICROS": str(SAMPLE_MICROS)}
        return found


def build(work: Path) -> Built:
    """Build both, as far as they changed.

    Args:
        work: Keeps what was compiled for the next call.

    Raises:
        RuntimeError: A program is missing that is needed, or a build failed.
    """
    if missing := [name for name in _TOOLS if shutil.which(name) is None]:
        raise RuntimeError(f"{', '.join(missing)}: not installed; a profile needs cargo, a C compiler and GNU binutils")
    built = Built(work / "kernel" / "compactor_native.abi3.so", work / "sampler.so")
    target = work / "target"
    variables = {**os.environ, **_NAMED, "CARGO_TARGET_DIR": str(target)}
    _run([*_CARGO, "--manifest-path", str(ROOT / "native" / "Cargo.toml")], variables)
    built.kernel.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(target / "release" / "libcompactor_native.so", built.kernel)
    source = Path(__file__).with_name("sampler.c")
    _run(["cc", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", str(built.sampler), str(source)])
    return built


def _run(command: list[str], variables: dict[str, str] | None = None) -> None:
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: exit code {done.returncode}: {done.stderr.strip()[-500:]}")
