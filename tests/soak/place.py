"""Where a soak takes place: on a real S3 server behind a proxy that spoils calls, or in plain folders."""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.faults.fault_rules import PASSING, FaultKind, Rule
from tests.faults.proxy import FaultProxy
from tests.faults.s3_server import REGION, s3_server
from tests.soak.phases import Weather
from tests.soak.trouble import lasting_rules
from tests.support.extras import VERSITYGW

BUCKET = "soak"

_PROBABILITIES = (0.0, 0.005, 0.02, 0.04)
_WAITING = frozenset({FaultKind.SILENCE, FaultKind.DONE_SILENCE, FaultKind.SLOW_BODY})
"""These cost the job seconds each, in which nothing else can go wrong."""

_BROWN_OUT = (
    Rule(FaultKind.SLOW_DOWN, probability=0.4),
    Rule(FaultKind.INTERNAL_ERROR, probability=0.2),
    Rule(FaultKind.RESET, probability=1 / 6),
)
"""Of all calls, 60 % go wrong: a later rule is asked only where no earlier one strikes."""


@dataclass
class Place:
    """Where everything is.

    Attributes:
        root: The folder or prefix of all places.
        region: Of S3; empty in plain folders.
        direct_url: The server itself; empty in plain folders.
        environment: What clients need to find in theirs.
        proxy: In front of the server; None in plain folders.
    """

    root: str
    region: str = ""
    direct_url: str = ""
    environment: dict[str, str] = field(default_factory=dict)
    proxy: FaultProxy | None = None

    @property
    def url(self) -> str:
        """What the job uses as its endpoint."""
        return self.proxy.url if self.proxy else ""

    def turn(self, weather: Weather, chance: random.Random) -> None:
        """From now on, other calls go wrong, beside those about objects that are denied or kill for good."""
        if self.proxy is None:
            return
        rules: Sequence[Rule] = ()
        if weather is Weather.BROWN_OUT:
            rules = _BROWN_OUT
        elif weather is Weather.CHANGING:
            rules = [
                Rule(
                    kind, probability=chance.choice(_PROBABILITIES) / (5 if kind in _WAITING else 1), burst=_burst(kind)
                )
                for kind in PASSING
            ]
        self.proxy.use([*lasting_rules(self.root), *rules], seed=chance.getrandbits(32))

    def faults(self) -> Counter[FaultKind]:
        """Those that took effect, by kind."""
        return self.proxy.traffic.faults() if self.proxy else Counter()


def _burst(kind: FaultKind) -> int:
    return 3 if kind is FaultKind.SLOW_DOWN else 1  # S3 throttles for a while, not for a call


@contextmanager
def place(folder: Path, *, on_s3: bool) -> Iterator[Place]:
    """A place that ends with its block.

    Args:
        folder: Where all data goes.
        on_s3: Whether to use S3: versitygw where it is installed, else moto.
    """
    if not on_s3:
        for name in ("manifests", "input"):
            (folder / "lake" / name).mkdir(parents=True)
        yield Place(str(folder / "lake"))
        return
    with s3_server(folder / "s3") as server, FaultProxy(server.url, slow_body_seconds=0.5) as proxy:
        server.make_bucket(BUCKET)
        yield Place(f"s3://{BUCKET}", REGION, server.url, server.environment, proxy)


def s3_is_at_hand() -> bool:
    """Whether there is an S3 server to start."""
    return VERSITYGW.found()
