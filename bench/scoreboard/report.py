"""The scoreboard as JSON and as Markdown."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from bench.scoreboard.account import Account
from bench.scoreboard.figures import Figure
from bench.scoreboard.truth import Truth
from bench.shapes import Written

HEADINGS = (
    "set",
    "contender",
    "MB/s",
    "CPU s/GB",
    "peak MiB",
    "lines that are rows",
    "values",
    "late keys kept",
    "bad lines",
    "what is wrong",
)
_NOTHING = "-"


@dataclass(frozen=True, slots=True)
class SetFacts:
    """What a set is.

    Attributes:
        bad_lines: Lines that are no JSON object.
        late_lines: Lines with the late key.
        sampled_lines: Lines whose values were compared.
    """

    name: str
    files: int
    lines: int
    bad_lines: int
    late_lines: int
    sampled_lines: int
    decoded_bytes: int
    stored_bytes: int

    @classmethod
    def of(cls, name: str, given: Written, truth: Truth) -> "SetFacts":
        """The facts of a set that was written and read."""
        counts = truth.lines, truth.bad, len(truth.late), len(truth.sample)
        return cls(name, given.files, *counts, given.decoded_bytes, given.stored_bytes)

    def line(self) -> str:
        """The set in a sentence."""
        bad = f", {self.bad_lines:,} of them bad" if self.bad_lines else ""
        stored = f", {self.stored_bytes / 1e6:,.0f} MB compressed" if self.stored_bytes != self.decoded_bytes else ""
        return (
            f"- **{self.name}**: {self.files:,} files, {self.decoded_bytes / 1e6:,.0f} MB{stored}, "
            f"{self.lines:,} lines{bad}; values of {self.sampled_lines:,} lines compared; "
            f"{self.late_lines:,} lines with the late key"
        )


@dataclass(frozen=True, slots=True)
class Scoreboard:
    """All that was measured.

    Attributes:
        method: How it was measured, in one paragraph.
        versions: Each package with its version.
        said: How each contender converts, by its name.
    """

    method: str
    versions: Sequence[str]
    said: Mapping[str, str]
    sets: Sequence[SetFacts]
    figures: Sequence[Figure]

    def json(self) -> str:
        """The whole as a JSON document."""
        return json.dumps(asdict(self), indent=2) + "\n"

    def markdown(self) -> str:
        """The table, and below it the sets, the options and the versions."""
        dirty = {each.name: each.bad_lines for each in self.sets}
        lines = [f"| {' | '.join(HEADINGS)} |", "|---" * len(HEADINGS) + "|"]
        for facts in self.sets:
            own = sorted((each for each in self.figures if each.data_set == facts.name), key=_order)
            lines += [f"| {' | '.join(cells(each, dirty[facts.name]))} |" for each in own]
        lines += ["", self.method, "", *(each.line() for each in self.sets), ""]
        lines += [f"- **{name}**: {said}" for name, said in self.said.items()]
        return "\n".join([*lines, "", f"{', '.join(self.versions)}."]) + "\n"


def cells(figure: Figure, bad_lines: int) -> tuple[str, ...]:
    """The cells of a figure, one for each of `HEADINGS`."""
    account = figure.account
    reason = figure.reason or (account.losses() if account else "")
    return (
        figure.data_set,
        figure.contender,
        _number(figure.megabytes_per_second, ",.0f"),
        _number(figure.cpu_seconds_per_gb, ",.1f"),
        _number(figure.peak_memory_mib, ",.0f"),
        _NOTHING if account is None else f"{account.good:,} of {account.expected:,}",
        _NOTHING if account is None else values_cell(account),
        _NOTHING if account is None else f"{account.late:,} of {account.late_expected:,}",
        _bad_cell(figure, bad_lines),
        " ".join(reason.split()).replace("|", "\\|"),
    )


def values_cell(account: Account) -> str:
    """How the compared values came through."""
    if account.different:
        return f"{account.different:,} of {account.compared:,} differ"
    if not account.compared:
        return "none compared"
    if account.text == account.compared:
        return "equal, same text"
    return f"equal, {100 * account.text // account.compared} % same text"


def _bad_cell(figure: Figure, bad_lines: int) -> str:
    if not bad_lines or figure.account is None:
        return _NOTHING
    return f"{figure.recorded:,} of {bad_lines:,} recorded" if figure.recorded is not None else "no record"


def _order(figure: Figure) -> tuple[float, str]:
    """The fastest first, those without a time last."""
    return -(figure.megabytes_per_second or 0.0), figure.contender


def _number(value: float | None, form: str) -> str:
    return _NOTHING if value is None else f"{value:{form}}"
