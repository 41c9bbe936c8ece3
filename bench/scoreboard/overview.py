"""The scoreboard in short: one line a set, one column a contender."""

from collections.abc import Sequence

from bench.scoreboard.account import Account
from bench.scoreboard.figures import Figure

_LOSSES = " *"
_UNKNOWN = "-"


def overview(figures: Sequence[Figure]) -> str:
    """A Markdown table of MB/s and CPU s/GB, in the order of the figures. An asterisk marks what loses something."""
    sets = dict.fromkeys(each.data_set for each in figures)
    contenders = dict.fromkeys(each.contender for each in figures)
    cells = {(each.data_set, each.contender): _cell(each) for each in figures}
    lines = [f"| set | {' | '.join(f'`{each}`' for each in contenders)} |", "|---" * (1 + len(contenders)) + "|"]
    lines += [f"| {each} | {' | '.join(cells.get((each, by), _UNKNOWN) for by in contenders)} |" for each in sets]
    return "\n".join(lines)


def _cell(figure: Figure) -> str:
    """How fast it is, or in two words why there is no time."""
    account = figure.account
    if figure.megabytes_per_second is not None and figure.cpu_seconds_per_gb is not None:
        losses = _LOSSES if account is None or account.losses() else ""
        return f"{figure.megabytes_per_second:,.0f} · {figure.cpu_seconds_per_gb:.1f}{losses}"
    if account is None or figure.reason != account.disagreement():
        return "fails"
    return "other values" if _has_all_lines(account) else "other rows"


def _has_all_lines(account: Account) -> bool:
    """Whether each good line is one row, and nothing else is."""
    return account.good == account.expected and not account.doubled and not account.stray
