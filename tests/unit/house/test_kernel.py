"""The house of the kernel: where it may be unsafe, and what is fuzzed."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
NATIVE = ROOT / "native"
FUZZ = NATIVE / "fuzz"

UNSAFE = {"special.rs"}
"""The modules of the kernel that may contain `unsafe`. Each proves it sound, and has a fuzz target of its name."""


def test_unsafe_code_is_in_a_module_of_its_own_that_proves_it_and_is_fuzzed() -> None:
    sources = {str(path.relative_to(NATIVE / "src")): path.read_text() for path in (NATIVE / "src").rglob("*.rs")}
    code = {name: re.sub(r"//.*", "", text) for name, text in sources.items()}
    unsafe = {name for name, text in code.items() if re.search(r"\bunsafe\b|\bunsafe_code\b", text)}
    assert unsafe == UNSAFE
    for name in unsafe:
        assert len(re.findall(r"\bunsafe\b", code[name])) == sources[name].count("// SAFETY: ")
        assert (FUZZ / "fuzz_targets" / name).exists()


def test_each_fuzz_target_is_run_by_make_fuzz() -> None:
    targets = {target["name"] for target in tomllib.loads((FUZZ / "Cargo.toml").read_text())["bin"]}
    assert targets == {path.stem for path in (FUZZ / "fuzz_targets").iterdir()}
    [run] = re.findall(r"^FUZZ_TARGETS := (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert targets == {each.partition(":")[0] for each in run.split()}
