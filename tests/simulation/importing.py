"""Imports the package so that it can see neither the real time, nor threads, nor chance: it gets substitutes for them.

`install` has to be called before anything of the package is imported. A module of the package that asks for something
of a replaced module that has no substitute cannot be imported.
"""

import builtins
import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType, SimpleNamespace
from typing import Any
from uuid import UUID

from tests.simulation import threads
from tests.simulation.scheduler import START
from tests.simulation.threads import scheduler

PACKAGE = "compactor"
STAND_INS = ("tests.support.memory_glue", "tests.support.memory_store")
"""The modules of tests that take part in a simulation as if they were of the package."""


def _wall_seconds() -> float:
    return START.timestamp() + scheduler().now


def _random() -> float:
    return scheduler().code_chance.random()


def _sleep(seconds: float) -> None:
    scheduler().pause(seconds)


SUBSTITUTES: Mapping[str, SimpleNamespace] = {
    "threading": SimpleNamespace(
        Condition=threads.Condition,
        Event=threads.Event,
        Lock=threads.Lock,
        RLock=threads.RLock,
        Thread=threads.Thread,
        get_ident=lambda: scheduler().task.number,  # type: ignore[union-attr]
    ),
    "concurrent.futures": SimpleNamespace(
        Future=threads.Future,
        ThreadPoolExecutor=threads.ThreadPoolExecutor,
        FIRST_EXCEPTION="FIRST_EXCEPTION",
        wait=None,
    ),
    "time": SimpleNamespace(
        monotonic=lambda: scheduler().now,
        sleep=lambda seconds: scheduler().pause(seconds),
        thread_time=lambda: 0.0,  # what is simulated takes no time
        time=_wall_seconds,
        time_ns=lambda: int(_wall_seconds() * 1e9),
    ),
    "random": SimpleNamespace(random=_random),
    "secrets": SimpleNamespace(token_hex=lambda n: f"{scheduler().code_chance.getrandbits(8 * n):0{2 * n}x}"),
    "uuid": SimpleNamespace(uuid4=lambda: UUID(int=scheduler().code_chance.getrandbits(128), version=4)),
}
"""By module, all that simulated code may use of it; `tests/unit/house/test_simulated.py` sees that it uses no more."""


def _import(
    name: str,
    namespace: Mapping[str, Any] | None = None,
    local: Mapping[str, Any] | None = None,
    fromlist: Sequence[str] = (),
    level: int = 0,
) -> Any:
    if level == 0 and name in SUBSTITUTES:
        return SUBSTITUTES[name]
    return builtins.__import__(name, namespace, local, fromlist, level)


def _is_simulated(module: str) -> bool:
    return module in STAND_INS or module == PACKAGE or module.startswith(PACKAGE + ".")


class _Loader(Loader):
    def __init__(self, inner: Any, change: Callable[[ModuleType], None]) -> None:
        self._inner = inner
        self._change = change

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        found: ModuleType | None = self._inner.create_module(spec)
        return found

    def exec_module(self, module: ModuleType) -> None:
        vars(module)["__builtins__"] = {**vars(builtins), "__import__": _import}
        self._inner.exec_module(module)
        self._change(module)


class _Finder(MetaPathFinder):
    """Finds the modules that are simulated as always, and gives them other builtins."""

    def __init__(self, changes: Mapping[str, Callable[[ModuleType], None]]) -> None:
        self._changes = changes

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not _is_simulated(fullname):
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self._changes.get(fullname, lambda _: None))
        return spec


def install(changes: Mapping[str, Callable[[ModuleType], None]]) -> None:
    """Replace time, threads and chance in all modules of the package that are imported from now on.

    Args:
        changes: By module, a function that replaces something in it right after its import.
    """
    loaded = list(filter(_is_simulated, sys.modules))
    if loaded:
        raise RuntimeError(f"{loaded[0]} was imported before the simulation; expected a process of its own")
    sys.meta_path.insert(0, _Finder(changes))
    importlib.invalidate_caches()
