"""Events of many keys, some of them late: for each day behind its own an event is half as frequent, or less."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import accumulate

_SECONDS_A_DAY = 24 * 3600


@dataclass(frozen=True, slots=True)
class Lateness:
    """How keys and delays are spread.

    Attributes:
        keys: Different keys; the nth is 1 / n times as frequent as the first.
        late_share: Of all events, those of an earlier day than the one of their arrival.
        late_days: The longest delay in days; n days are 1 / n times as frequent as one.
    """

    keys: int = 1000
    late_share: float = 0.2
    late_days: int = 30


def lines(day: date, count: int, lateness: Lateness, seed: str) -> Iterator[bytes]:
    """The lines that arrive on a day."""
    rng = random.Random(seed)
    keys, delays = range(1, lateness.keys + 1), range(1, lateness.late_days + 1)
    of_keys, of_delays = (list(accumulate(1 / each for each in some)) for some in (keys, delays))
    midnight = datetime(day.year, day.month, day.day, tzinfo=UTC)
    for _ in range(count):
        is_late = rng.random() < lateness.late_share
        delay = rng.choices(delays, cum_weights=of_delays)[0] if is_late else 0
        moment = midnight - timedelta(days=delay) + timedelta(seconds=rng.randrange(_SECONDS_A_DAY))
        [key] = rng.choices(keys, cum_weights=of_keys)
        yield (
            f'{{"ts":"{moment:%Y-%m-%dT%H:%M:%SZ}","user":"u{key:04d}","amount":{rng.randrange(100_000)},'
            f'"session":"{rng.getrandbits(128):032x}","page":"/p/{rng.randrange(5000)}"}}\n'
        ).encode()
