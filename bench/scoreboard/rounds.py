"""Runs the contenders on a set: first to account for its lines, then on the clock."""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bench.contenders import Contender
from bench.measure import Measurement, run_contender
from bench.scoreboard.account import read_account
from bench.scoreboard.figures import Figure, timed
from bench.scoreboard.sets import DataSet
from bench.scoreboard.truth import Truth
from bench.shapes import Written

_TIMED_PASSES = 2


@dataclass(frozen=True, slots=True)
class Rounds:
    """How to run the contenders on a set.

    Attributes:
        chosen: The set.
        given: Its files.
        truth: What its raw text says.
        work: The folder for output and logs.
        limit_seconds: A run that takes longer is ended, and counts as a failure.
        say: Told what runs now.
    """

    chosen: DataSet
    given: Written
    truth: Truth
    work: Path
    limit_seconds: float
    say: Callable[[str], object]

    def figures(self, contenders: Sequence[Contender], runs: int) -> list[Figure]:
        """Run each contender once to account for the lines, and then all that may be timed, in turn and back again."""
        proved = [self._proved(each) for each in contenders]
        allowed = [each for each, figure in zip(contenders, proved, strict=True) if not figure.reason]
        measured: dict[str, list[Measurement]] = {each.name: [] for each in allowed}
        for number in range(runs):
            for each in allowed[:: 1 - 2 * (number % 2)]:
                measured[each.name].append(self._run(each, f"run {number + 1}", _TIMED_PASSES))
                shutil.rmtree(self._place(each), ignore_errors=True)
        size = self.given.decoded_bytes
        return [each if each.reason else timed(each, measured[each.contender], size) for each in proved]

    def _proved(self, contender: Contender) -> Figure:
        """Convert once, and read the output back. A clean set has to come through whole, or it is not timed."""
        figure = Figure(self.chosen.name, contender.name)
        try:
            measured = self._run(contender, "account", 1)
            if measured.failure:
                return replace(figure, reason=measured.failure)
            account = read_account(self.chosen, self.truth, self._output(contender))
            reason = "" if self.chosen.is_dirty else account.disagreement()
            recorded = account.corrupt or measured.passes[0].rejected
            return replace(figure, account=account, recorded=recorded, reason=reason)
        except (OSError, ValueError, NotImplementedError) as exc:  # those of pyarrow are among them
            return replace(figure, reason=f"its output cannot be read: {str(exc)[:200]}")
        finally:
            shutil.rmtree(self._place(contender), ignore_errors=True)

    def _run(self, contender: Contender, what: str, passes: int) -> Measurement:
        self.say(f"{self.chosen.name}: {contender.name}, {what} ...")
        more = contender.dirty_args if self.chosen.is_dirty else ()
        log = self.work / f"{self.chosen.name.replace(' ', '-')}-{contender.name}.log"
        measured = run_contender(
            replace(contender, args=(*contender.args, *more)),
            self.given.folder,
            self._output(contender),
            log,
            passes=passes,
            limit_seconds=self.limit_seconds,
        )
        return replace(measured, failure=measured.failure.replace(f"{self.work}/", ""))

    def _output(self, contender: Contender) -> Path:
        """For the rows. Beside it is room for what else the contender keeps."""
        return self._place(contender) / "rows"

    def _place(self, contender: Contender) -> Path:
        return self.work / "output" / contender.name
