"""What fails within the kernel in Rust fails the attempt of its manifest, and ends no process."""

import subprocess
import sys

import pytest

from compactor.adapters.local.native.kernel import NativeKernel
from compactor.core.errors import StagingError
from tests.support import extras
from tests.support.native_rows import plan_of, schema_of

extras.NATIVE.need()

PanicException = type("PanicException", (BaseException,), {"__module__": "pyo3_runtime"})


def panics(*_: object) -> None:
    raise PanicException("index out of bounds")


def test_a_panic_of_the_module_is_an_error():
    """Python's class for panics is no `Exception`; it would end the driver with all its other manifests."""
    kernel = NativeKernel(plan_of(schema_of({"a": "string"})))
    kernel.begin_file("a")
    with pytest.raises(StagingError, match="the native kernel: "):
        kernel.read(b'{"a":1}')  # without its line feed, which no caller does
    with pytest.raises(StagingError, match="an earlier call failed"):
        kernel.end_file()


def test_a_panic_outside_the_module_s_own_net_is_an_error(monkeypatch):
    """In the constructor, or where arguments and results are converted."""
    plan = plan_of(schema_of({"a": "string"}))
    kernel = NativeKernel(plan)
    kernel._writer = type("Writer", (), {"read": panics, "take": panics})()
    for call in (lambda: kernel.read(b"\n"), kernel.take):
        with pytest.raises(StagingError, match="index out of bounds"):
            call()
    monkeypatch.setattr("compactor_native.BinWriter", panics)
    with pytest.raises(StagingError, match="index out of bounds"):
        NativeKernel(plan)


def test_what_asks_the_process_to_end_passes_through():
    kernel = NativeKernel(plan_of(schema_of({"a": "string"})))

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    kernel._writer = type("Writer", (), {"take": interrupted})()
    with pytest.raises(KeyboardInterrupt):
        kernel.take()


WITH_LITTLE_MEMORY = """
import resource, sys
from compactor.adapters.local.native.kernel import NativeKernel
from compactor.core.errors import StagingError
from tests.support.native_rows import ended, plan_of, schema_of
MIB = 1024 * 1024
block, room = eval(sys.argv[1]), int(sys.argv[2])
kernel = NativeKernel(plan_of(schema_of({"a": "string"}, rescued=True), rescues=True))
kernel.begin_file("file")
with open("/proc/self/statm") as file:
    used = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + room * MIB, resource.RLIM_INFINITY))
try:
    kernel.read(block)
    kernel.end_file()
    ended(kernel)
except StagingError as exc:
    print(exc)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux bounds the memory of a process")
@pytest.mark.parametrize(
    ("block", "room"),
    [
        ("""b'{"a":"' + b"x" * (32 * MIB) + b'"}\\n'""", 16),
        ("""b'{"a":"' + b"x" * (32 * MIB) + b'"}\\n'""", 64),
        ("""b'{"b":"' + b"\\\\\\\\n" * (16 * MIB) + b'"}\\n'""", 16),
        ("""b'{' + b'"a":1,' * (2 * MIB) + b'"a":1}\\n'""", 32),
        ("""b'{' + b",".join(b'"%06x":1' % at for at in range(MIB)) + b'}\\n'""", 32),
    ],
    ids=["text", "encoder", "escapes", "fields", "keys"],
)
def test_memory_that_is_not_to_be_had_fails_the_attempt(block, room):
    """A failed allocation would abort the process; what a line makes necessary is asked for before."""
    done = subprocess.run(
        [sys.executable, "-c", WITH_LITTLE_MEMORY, block, str(room)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    assert "the native kernel: out of memory for " in done.stdout
