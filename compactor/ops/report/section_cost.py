"""The section about money. HTML, no I/O."""

from compactor.core.formatting import DASH, dollars, duration
from compactor.cost.prices import AS_OF
from compactor.ops.report.bar_charts import NamedBar, bars_chart
from compactor.ops.report.frame import in_both_sizes
from compactor.ops.report.markup import Markup, joined
from compactor.ops.report.parts import Table, beside, folded_table, prose, section
from compactor.ops.report.report import Report
from compactor.ops.report.spending import Spending

_HOUR_SECONDS = 3600
_Line = tuple[str, float, float, float | None]
"""What was up, for how many seconds, for how many dollars, and how many that is a terabyte of input."""


def cost(report: Report) -> Markup:
    """What the period cost against the classic plan."""
    spent = report.spending
    lines = _lines(spent)
    words = _words(spent)
    bars = [NamedBar(name, amount, dollars(amount)) for name, _, amount, _ in lines]
    chart = in_both_sizes(lambda canvas: bars_chart(canvas, "cost", "Dollars for the period", words, bars))
    return section(
        "cost",
        "Cost",
        beside(
            joined([prose(words), prose(_basis(spent))]),
            chart,
            joined([folded_table(_plans(lines)), folded_table(_services(spent)) if spent.services else None]),
        ),
    )


def _lines(spent: Spending) -> list[_Line]:
    around = (f"{spent.classic}, around the clock", spent.elapsed_seconds, spent.classic_dollars)
    lines: list[_Line] = [(*around, spent.classic_dollars_per_terabyte)]
    if spent.job != spent.classic:
        named = (f"{spent.job}, around the clock", spent.elapsed_seconds, spent.job_dollars)
        lines.append((*named, spent.job_dollars_per_terabyte))
    at_work = (f"{spent.job}, while at work", spent.at_work_seconds, spent.at_work_dollars)
    return [*lines, (*at_work, spent.at_work_dollars_per_terabyte)]


def _words(spent: Spending) -> str:
    whole, work = duration(spent.elapsed_seconds), duration(spent.at_work_seconds)
    classic = f"The classic plan, {spent.classic} around the clock, costs {dollars(spent.classic_dollars)} for {whole}."
    if not spent.is_job_named and spent.is_local:
        return (
            f"This ran on a machine of your own, and AWS was paid nothing. {classic} Work was under way for {work} "
            f"here; so long a time of those workers is {dollars(spent.at_work_dollars)}. How fast they would be, this "
            "machine cannot tell."
        )
    if not spent.is_job_named:
        return (
            f"{classic} Work was under way for {work} of that, which is {dollars(spent.at_work_dollars)}. Which "
            "workers did it is not on record: name them by `--worker-type` and `--workers`."
        )
    saved = spent.classic_dollars - spent.job_dollars
    compared = f"{dollars(abs(saved))} {'less' if saved > 0 else 'more'}" if saved else "the same"
    return (
        f"{spent.job}, up around the clock, cost {dollars(spent.job_dollars)}: {compared} as against the classic plan. "
        f"{classic} Work was under way for {work}, which is {dollars(spent.at_work_dollars)}."
    )


def _basis(spent: Spending) -> str:
    requests = (
        f" Requests and other services for such a load: about {dollars(sum(each.dollars for each in spent.services))}."
    )
    return (
        f"Workers alone, by list prices of us-east-1 as of {AS_OF}: check them before quoting."
        f"{requests if spent.services else ''}"
    )


def _plans(lines: list[_Line]) -> Table:
    rows = [
        (
            name,
            f"{seconds / _HOUR_SECONDS:,.2f}",
            f"{amount:,.2f}",
            DASH if per_terabyte is None else f"{per_terabyte:,.2f}",
        )
        for name, seconds, amount, per_terabyte in lines
    ]
    return Table("cost", "Workers for the period", ("workers", "hours", "$", "$ a terabyte of input"), rows)


def _services(spent: Spending) -> Table:
    rows = [(each.service, each.item, each.basis, f"{each.dollars:,.4f}") for each in spent.services]
    total = sum(each.dollars for each in spent.services)
    return Table(
        "services",
        "Requests and other services for such a load, as an estimate",
        ("service", "item", "basis", "$"),
        rows,
        ("all", "", "", f"{total:,.4f}"),
        words=3,
        summary="Requests and other services",
    )
