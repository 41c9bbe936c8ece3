"""The profile: which stage a sample belongs to, what the figures add up to, and that the page has them."""

import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.profile.building import Built
from bench.profile.figures import Profile
from bench.profile.limits import MEANING, limits
from bench.profile.runs import Spent, by_stage, spent
from bench.profile.samples import SAMPLE_WORDS, Address, Maps, follows_call, read_samples
from bench.profile.shapes import PROFILED
from bench.profile.stages import RULES, Place, Stage, stage_of, stage_of_place
from bench.profile.symbols import parsed
from bench.shapes import write_shape
from compactor import compact
from tests.support import extras

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "bench" / "where-the-time-goes.md").read_text()
KERNEL = "compactor_native.abi3.so"
CRATES = "/root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f"
PARQUET = f"{CRATES}/parquet-60.1.0/src"

KNOWN = [
    (Stage.UTF8, KERNEL, "validate_utf8_basic", f"{CRATES}/simdutf8-0.1.5/src/implementation/algorithm.rs"),
    (Stage.UTF8, KERNEL, "compactor_native::bin_writer::is_line_text", "/x/native/src/bin_writer.rs"),
    (Stage.SCAN, KERNEL, "compactor_native::scan::record", "/x/native/src/scan.rs"),
    (Stage.SCAN, KERNEL, "compactor_native::special::find_special", "/x/native/src/special.rs"),
    (Stage.KEYS, KERNEL, "compactor_native::keys::Keys::find", "/x/native/src/keys.rs"),
    (Stage.STATISTICS, KERNEL, "compactor_native::statistics::readable", "/x/native/src/statistics.rs"),
    (Stage.STATISTICS, KERNEL, "update_min<ByteArray>", f"{PARQUET}/column/writer/mod.rs"),
    (
        Stage.STATISTICS,
        KERNEL,
        "parquet::arrow::arrow_writer::byte_array::is_greater",
        f"{PARQUET}/arrow/arrow_writer/byte_array.rs",
    ),
    (
        Stage.UTF8,
        KERNEL,
        "core::str::validations::run_utf8_validation",
        "/rustc/59807616e/library/core/src/str/validations.rs",
    ),
    (Stage.STATISTICS, KERNEL, "new", f"{PARQUET}/file/statistics.rs"),
    (Stage.WRITE, KERNEL, "compactor_native::output::Output::take", "/x/native/src/output.rs"),
    (Stage.WRITE, KERNEL, "compactor_native::python_bytes", "/x/native/src/lib.rs"),
    (Stage.WRITE, KERNEL, "append_column", f"{PARQUET}/file/writer.rs"),
    (Stage.WRITE, KERNEL, "<ArrowPageWriter as PageWriter>::write_page", f"{PARQUET}/arrow/arrow_writer/mod.rs"),
    (Stage.STATISTICS, KERNEL, "compactor_native::text::bounds::Bounds::add", "/x/native/src/text/bounds.rs"),
    (Stage.DICTIONARY, KERNEL, "compactor_native::text::dictionary::place", "/x/native/src/text/dictionary.rs"),
    (Stage.ENCODE, KERNEL, "compactor_native::text::hybrid::Hybrid::put", "/x/native/src/text/hybrid.rs"),
    (Stage.ENCODE, KERNEL, "compactor_native::text::writer::TextWriter::text", "/x/native/src/text/writer.rs"),
    (Stage.WRITE, KERNEL, "compactor_native::text::pages::Compressor::page", "/x/native/src/text/pages.rs"),
    (Stage.WRITE, KERNEL, "<compactor_native::parts::Parts as Write>::write", "/x/native/src/parts.rs"),
    (Stage.COMPRESS, KERNEL, "compactor_native::text::snappy::block_of", "/x/native/src/text/snappy.rs"),
    (Stage.BUILD, KERNEL, "compactor_native::text::rows::TextRows::push", "/x/native/src/text/rows.rs"),
    (Stage.BUILD, KERNEL, "compactor_native::rows::Rows::append", "/x/native/src/rows.rs"),
    (Stage.BUILD, KERNEL, "compactor_native::values::number::parse", "/x/native/src/values/number.rs"),
    (Stage.COMPRESS, KERNEL, "snap::compress::compress_block", f"{CRATES}/snap-1.1.1/src/compress.rs"),
    (Stage.COMPRESS, KERNEL, "ZSTD_compressBlock_doubleFast", ""),
    (Stage.DICTIONARY, KERNEL, "intern", f"{PARQUET}/util/interner.rs"),
    (Stage.DICTIONARY, KERNEL, "DictEncoder::encode", f"{PARQUET}/arrow/arrow_writer/byte_array.rs"),
    (Stage.ENCODE, KERNEL, "put", f"{PARQUET}/encodings/rle.rs"),
    (Stage.READ, "libc.so.6", "read", ""),
    (Stage.READ, "libc-2.28.so", "__pread64", ""),
    (Stage.WRITE, "libc.so.6", "write", ""),
    (Stage.WRITE, "libc.so.6", "fsync", ""),
    (Stage.DECODE, "libz.so.1.2.13", "inflate", ""),
    (Stage.DECODE, "zlib.cpython-311-x86_64-linux-gnu.so", "", ""),
    (Stage.DECODE, "zlib_ng.cpython-311-x86_64-linux-gnu.so", "", ""),
    (Stage.HASH, "libcrypto.so.3", "", ""),
    (Stage.HASH, "blake3.cpython-311-x86_64-linux-gnu.so", "", ""),
    (Stage.VERIFY, "libparquet.so.2500", "", ""),
    (Stage.PYTHON, "libpython3.11.so.1.0", "_PyEval_EvalFrameDefault", ""),
    (Stage.PYTHON, "orjson.cpython-311-x86_64-linux-gnu.so", "", ""),
]


@pytest.mark.parametrize(("stage", "module", "function", "source"), KNOWN)
def test_a_known_place_has_its_stage(stage: Stage, module: str, function: str, source: str) -> None:
    """Each kind of place belongs to one stage."""
    assert stage_of([Place(module, function, source)]) is stage


@pytest.mark.parametrize(
    "place",
    [
        Place("libc.so.6", "malloc"),
        Place("libc.so.6", "readlink"),
        Place("libm.so.6", "log"),
        Place(KERNEL),
        Place(KERNEL, "memchr::memchr", f"{CRATES}/memchr-2.8.3/src/memchr.rs"),
        Place(KERNEL, "finish_grow", "/rustc/59807616e/library/alloc/src/raw_vec/mod.rs"),
    ],
)
def test_what_anyone_may_call_has_the_stage_of_its_caller(place: Place) -> None:
    """The nearest caller with a stage tells it; without one it is `other`, and so is an empty stack."""
    scan = Place(KERNEL, "compactor_native::scan::record", "/x/native/src/scan.rs")
    assert stage_of_place(place) is None
    assert stage_of([place, scan, Place("libpython3.11.so.1.0")]) is Stage.SCAN
    assert stage_of([place]) is stage_of([]) is Stage.OTHER


def test_sources_of_the_kernel_have_a_stage() -> None:
    """A source that is new falls to `build` at worst; those that the rules name are there."""
    sources = {path.name for path in (ROOT / "native" / "src").rglob("*.rs")}
    named = {name.replace("\\", "") for rule in RULES for name in re.findall(r"(\w+\\\.rs)", rule.source)}
    of_texts = {"bounds.rs", "dictionary.rs", "hybrid.rs", "writer.rs", "pages.rs", "snappy.rs"}
    assert named == {"scan.rs", "special.rs", "keys.rs", "statistics.rs", "output.rs", "parts.rs", "lib.rs"} | of_texts
    assert named <= sources


@given(counts=st.dictionaries(st.sampled_from(Stage), st.integers(1, 10_000), min_size=1), seconds=st.floats(0.01, 100))
def test_stages_add_up_to_the_whole(counts: dict[Stage, int], seconds: float) -> None:
    """What is of no known stage is counted, too."""
    taken = Spent(seconds, counts).by_stage
    assert sum(taken.values()) == pytest.approx(seconds)
    assert taken.keys() == set(Stage)


def test_samples_are_counted_by_stage() -> None:
    """Those of `other` are also counted by their innermost place, so that a rule can be made for it."""
    lost, scan = Address("/lib/libx.so", 16), Address(f"/{KERNEL}", 32)
    names = {lost: [Place("libx.so", "turn")], scan: [Place(KERNEL, "record", "/x/native/src/scan.rs")]}
    counted, unknown = by_stage({(lost, scan): 3, (lost,): 2, (): 1}, lambda address: names[address])
    assert counted == {Stage.SCAN: 3, Stage.OTHER: 3}
    assert unknown == {"libx.so turn": 2, "no file": 1}


@pytest.mark.parametrize(
    ("code", "machine", "is_call"),
    [
        ("0000e811223344", "x86_64", True),  # call 0x44332211
        ("0000000000ffd0", "x86_64", True),  # call *%rax
        ("00000000ff5008", "x86_64", True),  # call *8(%rax)
        ("00ff1511223344", "x86_64", True),  # call *0x44332211(%rip)
        ("00ff2511223344", "x86_64", False),  # jmp *0x44332211(%rip)
        ("00000000000090", "x86_64", False),
        ("", "x86_64", False),
        ("00000001000094", "aarch64", True),  # bl
        ("000000000100003f", "aarch64", False),
        ("00003f0000d63f", "aarch64", False),
        ("00000000003fd6", "aarch64", True),  # blr x0
    ],
)
def test_a_return_address_follows_a_call(code: str, machine: str, is_call: bool) -> None:
    """Other words of a stack are data, though they may look like addresses."""
    assert follows_call(bytes.fromhex(code), machine) is is_call


@pytest.mark.skipif(sys.platform != "linux", reason="maps of processes are Linux's")
def test_addresses_are_told_by_the_file(tmp_path: Path) -> None:
    """From the maps of a process: where in which file an instruction is, and where a call is that returns to it."""
    library = tmp_path / "lib x.so"
    call = {"x86_64": "e800000000", "aarch64": "0000000094"}[platform.machine()]
    library.write_bytes(bytes(0x1000) + bytes.fromhex(call) + bytes(0xFFB))
    maps = Maps(
        f"7f0000000000-7f0000001000 r--p 00000000 fd:00 7    {library}\n"
        f"7f0000001000-7f0000002000 r-xp 00001000 fd:00 7    {library}\n"
        "7f0000002000-7f0000003000 rw-p 00000000 00:00 0 \n7ffd00000000-7ffd00001000 r-xp 00000000 00:00 0    [vdso]\n"
    )
    assert maps.address(0x7F0000001005) == Address(str(library), 0x1005)
    assert maps.address(0x7F0000000005) is maps.address(0x7F0000002005) is maps.address(5) is None
    assert maps.caller(0x7F0000001006) is maps.caller(0x7FFD00000010) is None
    assert maps.caller(0x7F0000001005) == Address(str(library), 0x1004)


def test_inlined_functions_come_first() -> None:
    """As addr2line prints them: the function that was inlined, then the one that holds it."""
    printed = "0x10\nfind\n/x/native/src/keys.rs:7\nrecord\n/x/native/src/scan.rs:9 (discriminator 2)\n0x20\n??\n??:0\n"
    keys, scan = Place(KERNEL, "find", "/x/native/src/keys.rs"), Place(KERNEL, "record", "/x/native/src/scan.rs")
    assert parsed(printed, KERNEL) == [[keys, scan], [Place(KERNEL)]]


def profile(shape: str) -> Profile:
    whole = Spent(2.0, {Stage.SCAN: 50, Stage.PYTHON: 40, Stage.OTHER: 10})
    start = Spent(0.9, {Stage.PYTHON: 100})
    return Profile(shape, 500_000_000, whole, start, {Stage.SCAN: 0.1, Stage.WRITE: 0.05})


def test_figures_are_without_the_start() -> None:
    """Each is a gigabyte's; a stage that takes less than at the start takes nothing."""
    taken = profile("events").taken
    assert taken[Stage.SCAN] == pytest.approx(2.0)
    assert taken[Stage.OTHER] == pytest.approx(0.4)
    assert taken[Stage.PYTHON] == 0
    assert profile("events").at_best == pytest.approx({Stage.SCAN: 0.2, Stage.WRITE: 0.1})


def test_the_page_has_the_table() -> None:
    """Every stage and every shape, with the limits as they are called; `make profile` writes it."""
    begin, _, rest = PAGE.partition("<!-- stages: made by python -m bench.profile -->")
    lines = rest.partition("<!-- stages end -->")[0].strip().splitlines()
    names = [shape.name for shape in PROFILED]
    assert begin != PAGE
    assert lines[0] == f"| stage | {' | '.join(names)} | limit, {names[0]} | the limit is |"
    rows = {line.split(" | ")[0].strip("| "): line for line in lines if line.startswith("| ")}
    assert list(rows) == ["stage", "---", *Stage, "**all**"]
    assert all(
        line.endswith(f"| {MEANING.get(Stage(name), '')} |") for name, line in rows.items() if name in set(Stage)
    )


@pytest.fixture
def sampler(tmp_path: Path) -> Path:
    if shutil.which("cc") is None or sys.platform != "linux":
        pytest.skip("a C compiler and Linux are needed")
    made = tmp_path / "sampler.so"
    source = ROOT / "bench" / "profile" / "sampler.c"
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", str(made), str(source)], check=True)
    return made


def test_a_process_is_sampled(sampler: Path, tmp_path: Path) -> None:
    """Samples of a program in Python are in Python; their stacks have callers; its child is not sampled."""
    folder = tmp_path / "samples"
    folder.mkdir()
    built = Built(tmp_path / KERNEL, sampler)
    code = "import os; sum(range(20_000_000)); assert 'LD_PRELOAD' not in os.environ"
    subprocess.run([sys.executable, "-c", code], check=True, env=built.variables(folder))
    stacks = list(read_samples(folder))
    assert stacks
    assert max(map(len, stacks)) > 1
    assert {Path(stack[0].file).name.partition(".")[0][:9] for stack in stacks} & {"libpython", "python3", "python"}
    assert f"SAMPLE_WORDS {SAMPLE_WORDS}\n" in (ROOT / "bench" / "profile" / "sampler.c").read_text()


@pytest.mark.full
def test_a_tiny_run(sampler: Path, tmp_path: Path) -> None:
    """From input to figures, with the kernel that is installed: Python takes most of it."""
    native = pytest.importorskip("compactor_native", reason=extras.NATIVE.reason)
    if shutil.which("addr2line") is None or shutil.which("nm") is None:
        pytest.skip("GNU binutils are needed")
    written = write_shape(PROFILED[1].scaled(1_000_000), tmp_path / "input", 7)
    kernel = next(Path(native.__file__).parent.glob("compactor_native*.so"))
    found = spent(Built(kernel, sampler), written, tmp_path, 20)
    assert sum(found.by_stage.values()) == pytest.approx(found.seconds)
    assert max(found.samples, key=lambda stage: found.samples[stage]) is Stage.PYTHON


def test_each_limit_is_measured(tmp_path: Path) -> None:
    """Of input and the output that is made of it."""
    extras.NATIVE.need()
    written = write_shape(PROFILED[1].scaled(200_000), tmp_path / "input", 7)
    assert compact(written.folder, tmp_path / "rows").exit_code == 0
    assert limits(written.folder, tmp_path / "rows", tmp_path).keys() == MEANING.keys()
