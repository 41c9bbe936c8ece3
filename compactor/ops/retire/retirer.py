"""Retires dates: puts on record what expires, and removes it."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from compactor.core.documents.records import Why
from compactor.core.text.safe_text import quoted
from compactor.ops.retire.scan import RetireReport, RetireScan
from compactor.upkeep.expiring import Expirer


@dataclass(frozen=True)
class Retirer:
    """Retires what a scan found. Safe beside jobs, closings, redrives, rebuilds and other retirements."""

    expirer: Expirer

    def retire(
        self,
        scan: RetireScan,
        before: str,
        *,
        dry_run: bool = False,
        on_date: Callable[[str], None] = lambda _: None,
    ) -> RetireReport:
        """Retire the dates of a scan, the earliest first, after what an earlier call did not finish.

        Raises:
            AccessError: The store refused to delete something. The next call goes on with it.
        """
        report = RetireReport(before, dry_run, refused=scan.refused, retired_before=scan.retired_before)
        if dry_run:
            report.retired = [each.sizes for each in scan.retirable]
            return report
        report.finished = len(self.expirer.finish([Why.RETIRED]))
        rule = f"`compactor retire --before {quoted(before)}`"
        for each in scan.retirable:
            date = each.sizes.date
            on_date(date)
            waiting = self.expirer.expire(Why.RETIRED, date, each.name, rule, dict(each.manifests))
            report.retired.append(replace(each.sizes, in_work=len(waiting)))
        return report
