"""Formats values for people: counts, bytes, rates, times, and faulty values. No I/O."""

import difflib
import json
from collections.abc import Iterable, Mapping

_SHOWN_MAX_CHARACTERS = 120
_MINUTE_SECONDS = 60
_HOUR_SECONDS = 3600
_DAY_SECONDS = 86_400
DASH = "\N{EN DASH}"


def shown(value: object) -> str:
    """A value for a message: as JSON if possible, truncated to 120 characters."""
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError, RecursionError):
        text = f"a {type(value).__name__}"
    text = text.encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= _SHOWN_MAX_CHARACTERS else text[: _SHOWN_MAX_CHARACTERS - 3] + "..."


def count(number: int, thing: str, things: str = "") -> str:
    """A number of things, as in `1 file` and `2,000 files`."""
    return f"{number:,} {thing if number == 1 else things or thing + 's'}"


def rows_and_bytes(rows: int, size_bytes: int) -> str:
    """What a file has, as in `1 row, 310 bytes`."""
    return f"{count(rows, 'row')}, {size_bytes} bytes"


def tally(rows: int, rejected: int, blank: int, erased: int = 0) -> str:
    """The results of lines, as in `2 rows + 1 reject + 0 blank`."""
    gone = f" + {erased:,} erased" if erased else ""
    return f"{count(rows, 'row')} + {count(rejected, 'reject')} + {blank:,} blank{gone}"


def by_name(counts: Mapping[str, int]) -> str:
    """Counts with their names, the largest first, as in `2 missing, 1 unreadable`."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{number:,} {name}" for name, number in ordered if number)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The known word most like an unknown one, as in `; did you mean user?`; empty if none is."""
    close = difflib.get_close_matches(word, known, n=1)
    return f"; did you mean {close[0]}?" if close else ""


def size(length_bytes: float) -> str:
    """Bytes in decimal units, as in `3.7 MB`."""
    amount = float(length_bytes)
    for unit in ("bytes", "kB", "MB", "GB"):
        if amount < 1000:  # noqa: PLR2004 - the step between units
            return f"{amount:,.0f} {unit}" if unit == "bytes" else f"{amount:,.1f} {unit}"
        amount /= 1000
    return f"{amount:,.1f} TB"


def rate(length_bytes: float, seconds: float) -> str:
    """Bytes over time, as in `45.2 MB/s`; a dash for zero time. A slow rate is never shown as 0."""
    if seconds <= 0:
        return DASH
    each_second = length_bytes / seconds
    return "under 1 byte/s" if 0 < each_second < 1 else f"{size(each_second)}/s"


def duration(seconds: float) -> str:
    """Time in its two largest units, as in `2 min 5 s`, without zeros, as in `24 h`."""
    whole = round(seconds)
    if whole < _MINUTE_SECONDS:
        return f"{seconds:.1f} s" if seconds < 10 else f"{whole} s"  # noqa: PLR2004 - two digits are enough
    if whole < _HOUR_SECONDS:
        return _two(whole // _MINUTE_SECONDS, "min", whole % _MINUTE_SECONDS, "s")
    if whole <= _DAY_SECONDS:
        return _two(whole // _HOUR_SECONDS, "h", whole % _HOUR_SECONDS // _MINUTE_SECONDS, "min")
    return _two(whole // _DAY_SECONDS, "d", whole % _DAY_SECONDS // _HOUR_SECONDS, "h")


def shown_seconds(seconds: float) -> str:
    """Time in whole seconds or its two largest units, for ages and limits; at least 0."""
    return f"{max(0, round(seconds))} s" if seconds < _MINUTE_SECONDS - 0.5 else duration(seconds)


def _two(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large} {large_unit} {small} {small_unit}" if small else f"{large} {large_unit}"


def percent(part: float, whole: float) -> str:
    """A share, as in `12.5 %`; a dash if the whole is zero. Never rounded to 0 % or 100 %."""
    if not whole:
        return DASH
    share = 100 * part / whole
    if 0 < share < 0.01:  # noqa: PLR2004 - what two digits can show
        return "under 0.01 %"
    if 99.95 <= share < 100:  # noqa: PLR2004 - else rounded up to 100
        return "over 99.9 %"
    return f"{share:.2f} %" if 0 < share < 1 else f"{share:.1f} %"


def dollars(amount: float) -> str:
    """Dollars, as in `$1,234.50`; less than a cent keeps two digits."""
    return f"${amount:,.2f}" if amount >= 0.01 or not amount else f"${amount:.2g}"  # noqa: PLR2004 - a cent
