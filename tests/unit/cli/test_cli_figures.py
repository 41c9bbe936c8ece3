"""Each figure that two commands show is the same in both, whatever was compacted, redriven, rebuilt or forgotten."""

import gzip
import json
import os
import random
import re
import time
from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from compactor import trace
from tests.support import extras
from tests.support.report_pages import read_page
from tests.support.terminals import call

pytestmark = extras.NATIVE.needed

STEPS, MANY_STEPS = 7, 24
SEEDS, MANY_SEEDS = (0, 7), range(8, 18)
NO_STEPS = {"run", "compact", "put", "lines", "put_rows", "check"}
VALUES = ("ann", "bob", "eve")

Shown = dict[str, dict[str, object]]
"""By the name of a figure, what each command shows of it."""


class History:
    """A folder, what happens to it, and what commands show of it. Everything follows from the seed."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.made = 0
        self.done: list[str] = []
        Path("raw").mkdir()
        self.put_rows()
        self.compact("--types", "infer")

    def run(self, steps: int) -> None:
        """Do as many things by chance, and compare what the commands show after each."""
        for _ in range(steps):
            step = self.chance.choice(STEPS_BY_CHANCE)
            self.done.append(step)
            getattr(self, step)()
            self.check()

    # What happens

    def compact(self, *options: str) -> None:
        result = call("compact", "raw", "rows", *options, "--json")
        assert result.exit_code in {0, 3}, result.output
        self.compacted = json.loads(result.stdout)

    def put(self, name: str, data: bytes) -> None:
        """Write an input file of an hour ago; each one has a time of its own."""
        self.made += 1
        path = Path("raw", name)
        path.write_bytes(gzip.compress(data, mtime=0) if name.endswith(".gz") and data[:1] == b"{" else data)
        os.utime(path, (time.time() - 3600 + self.made,) * 2)

    def lines(self) -> bytes:
        """Good lines, and some of a wrong type, blank ones, and ones that become rejects."""
        kinds = (b'{"id": %d, "who": "%s"}', b'{"id": "x%d", "who": "%s"}', b" ", b"{broken", b"[%d]")
        chosen = [b'{"id": 1, "who": "zoe"}', *self.chance.choices(kinds, (12, 1, 1, 1, 1), k=12)]
        values = (self.chance.randrange(99), self.chance.choice(VALUES).encode())
        return b"".join(line % values[: line.count(b"%")] + b"\n" for line in chosen)

    def put_rows(self) -> None:
        for number in range(self.chance.randint(1, 3)):
            self.put(f"a{self.made}-{number}.ndjson{self.chance.choice(('', '.gz'))}", self.lines())

    def new_files(self) -> None:
        self.put_rows()
        self.compact()

    def new_files_with_lines_that_are_too_long(self) -> None:
        """They become rows if they are redriven, as later calls have another limit."""
        self.put(f"a{self.made}-long.ndjson", self.lines() + b'{"id": 2, "who": "%s"}\n' % (b"x" * 2000))
        os.environ["COMPACTOR_INPUT__MAX_LINE_BYTES"] = "1024"
        self.compact()
        del os.environ["COMPACTOR_INPUT__MAX_LINE_BYTES"]

    def new_files_that_are_quarantined(self) -> None:
        self.put_rows()
        for number in range(self.chance.randint(1, 3)):
            bad = (b"a,b\n1,2\n", ".csv"), (gzip.compress(self.lines() * 40, mtime=0)[:-9], ".ndjson.gz")
            data, ending = self.chance.choice(bad)
            self.put(f"b{self.made}-{number}{ending}", data)
        self.compact()

    def quarantined_files_are_fixed(self) -> None:
        for path in sorted(Path("raw").glob("b*")):
            if self.chance.random() < 0.5:
                self.put(path.name, self.lines())
        self.compact()

    def quarantined_files_are_removed(self) -> None:
        for path in sorted(Path("raw").glob("b*")):
            if self.chance.random() < 0.5:
                path.unlink()
        self.compact()
        self.compact()

    def dismiss(self) -> None:
        named = sorted({each["uri"] for each in document("verify")["quarantined_files"]})
        if named:
            result = call("dismiss", "--in", "rows", self.chance.choice(named), "--why", "it is not wanted")
            assert result.exit_code in {0, 3}, result.output
        self.compact()

    def files_are_replaced(self) -> None:
        path = self.chance.choice(sorted(Path("raw").glob("a*")))
        self.put(path.name, self.lines())
        self.compact("--on-replaced", self.chance.choice(("rebuild", "append", "quarantine")))

    def a_torn_manifest(self) -> None:
        Path(f"rows.compactor/manifests/torn-{self.made}.json").write_text("{")
        self.made += 1
        self.compact()

    def redrive(self) -> None:
        for kind in ("rejects", self.chance.choice(("files", "manifests"))):
            assert call("redrive", kind, "--in", "rows", "--yes").exit_code in {0, 3}
        self.compact()

    def lost_output(self) -> None:
        """Files of rows are gone until the next rebuild."""
        for path in with_rows():
            if self.chance.random() < 0.5:
                path.unlink()
        self.compact()

    def rebuild(self) -> None:
        assert call("rebuild", "rows").exit_code in {0, 3}
        self.compact()

    def erase(self) -> None:
        Path("values").write_text(self.chance.choice(VALUES))
        result = call("data", "erase", "rows", "--key", "who", "--value-file", "values", "--yes")
        assert result.exit_code in {0, 1, 3}, result.output
        self.compact()

    # What is shown

    def check(self) -> None:
        """Compare all that the commands show."""
        asked = {name: document(name) for name in ("status", "report", "verify")}
        shown = figures(compact=self.compacted["verified"], **asked)
        assert differing(shown) == {}, self.done
        of_screens(shown, page=page())
        of_traces(shown, sorted(map(str, Path("raw").iterdir())))
        of_disk(shown)
        assert differing(shown) == {}, self.done


STEPS_BY_CHANCE = [name for name in vars(History) if name not in NO_STEPS and not name.startswith("_")]


def differing(shown: Shown) -> Shown:
    """The figures of which commands show different values."""
    return {name: by for name, by in shown.items() if len({repr(each) for each in by.values()}) > 1}


def document(name: str) -> Any:
    return json.loads(call(name, "rows", "--json").stdout)


def page() -> str:
    assert call("report", "rows", "--out", "page.html").exit_code in {0, 3}
    return Path("page.html").read_text()


def with_rows() -> list[Path]:
    return [path for path in sorted(Path("rows").rglob("*.parquet")) if pq.read_metadata(path).num_rows]


def counted(counts: Mapping[str, int]) -> dict[str, int]:
    """Counts without those that are zero, in one order."""
    return {name: counts[name] for name in sorted(counts) if counts[name]}


def figures(*, status: Any, report: Any, verify: Any, compact: Any) -> Shown:
    """The figures of the documents, by the command that shows them."""
    shown: Shown = defaultdict(dict)

    def compare(name: str, **by: object) -> None:
        shown[name].update(by)

    recent, totals, rates = status["recent"], report["totals"], status["rates"]
    of_status, of_report = status["quarantined_files"], report["quarantined_files"]
    summed = {
        "rows": "records",
        **{each: each for each in ("input_files", "input_bytes", "output_files", "output_bytes")},
    }
    for name, own in summed.items():
        compare(name, status=sum(each[own] for each in recent), report=totals[name])
    of_both = ("manifests", "lines", "rows", "rejected_lines", "blank_lines", "erased_lines", "input_files")
    for name in (*of_both, "output_files", "output_bytes"):
        compare(name, report=totals[name], verify=verify[name])
    compare("manifests", status=len(recent))
    compare("rejected_lines", status=status["rejects"]["lines"])
    by_reason = counted({each["reason"]: each["lines"] for each in report["rejects"]})
    of_lines = status["rejects"]["by_reason"]
    compare("reasons", report=by_reason, verify=counted(verify["rejects_by_reason"]), status=counted(of_lines))
    compare("misfits", verify=verify["rescued_values"], status=status["misfits"]["values"])
    compare("misfits by column", verify=counted(verify["misfits"]), status=counted(status["misfits"]["by_column"]))
    ratio = "output_bytes_per_input_byte"
    compare(ratio, status=status[ratio], report=totals[ratio])
    at_work = rates["at_work_bytes_per_second"], totals["at_work_bytes_per_second"]
    compare("rate at work", status=round(at_work[0]), report=round(at_work[1]))
    nothing_fills_a_file = status["sizes"]["by_bytes"]["hit_rate"]
    compare("hit rate", status=nothing_fills_a_file, expected=None)
    compare("sizes", status=status["sizes"]["by_bytes"], report=report["sizes"])
    open_files = verify["open_quarantined_files"]
    compare("open files", status=of_status["open"], report=of_report["open"], verify=open_files)
    compare("open by status", status=counted(of_status["by_status"]), report=counted(of_report["by_status"]))
    ever = sum((Counter(each["quarantined"]) for each in recent), Counter[str]())
    of_verify = verify["quarantined_by_status"]
    compare("ever", status=counted(ever), report=counted(of_report["ever_by_status"]), verify=counted(of_verify))
    letters = status["dead_letters"], report["dead_letters"]
    compare(
        "dead letters", status=letters[0]["manifests"], report=letters[1]["manifests"], verify=verify["dead_letters"]
    )
    compare("open letters", status=letters[0]["open"], report=letters[1]["open"], verify=verify["open_dead_letters"])
    compare(
        "schema",
        **{
            name: [each["schema"][key] for key in ("version", "columns")]
            for name, each in (("status", status), ("report", report))
        },
    )
    for name in ("rows", "lines", "output_files", "input_files", "rejected_lines", "erased_lines"):
        compare(name, compact=compact[name])
    compare("verified output files", verify=verify["output_files_verified"], compact=compact["output_files_verified"])
    compare("missing output files", verify=verify["output_files_missing"], compact=compact["output_files_missing"])
    return shown


def number(pattern: str, text: str) -> int:
    """The number that a screen shows; 0 if it does not show it."""
    found = re.search(pattern, text)
    return int(found[1].replace(",", "")) if found else 0


def of_screens(shown: Shown, *, page: str) -> None:
    """Add what the screens of `status` and `verify`, the summary of `compact` and the page of `report` show."""
    status, verify, compact = (
        call(*words).stdout for words in (("status", "rows"), ("verify", "rows"), ("compact", "raw", "rows"))
    )
    words = " ".join(read_page(page).text.replace("\N{NO-BREAK SPACE}", " ").split())
    ratio = f"{shown['output_bytes_per_input_byte']['report']:.3f}"
    for name, text, expected in (
        ("status", status, f"size      {ratio} Parquet bytes per stored input byte"),
        ("page", words, f"Each stored byte of input became {ratio} bytes of Parquet"),
    ):
        assert expected in text, (name, text)
    shown["open files"] |= {
        "screen of status": number(r"files     (\d[\d,]*) file", status),
        "screen of verify": number(r"quarantined +(\d[\d,]*) needs? attention", verify),
        "verdict": number(r"(\d[\d,]*) input files? (?:is|are) quarantined", words),
        "tile": number(r"<dt>Quarantined files</dt><dd>(\d[\d,]*)<", page),
        "section": number(r"(\d[\d,]*) files? needs? attention", words),
    }
    for name, text in (("screen of verify", verify), ("compact again", compact)):
        counted_in = re.search(r"counted in the footers of (?:all )?(\d[\d,]*)(?: of (\d[\d,]*))?", text)
        assert counted_in, text
        shown["verified output files"][name] = int(counted_in[1])
        shown["output_files"][name] = int(counted_in[2] or counted_in[1])
        shown["missing output files"][name] = number(r"(\d[\d,]*) missing[,)]", text)
        shown["lines"][name] = number(r"(\d[\d,]*)(?: lines?)? = ", text)
        shown["rows"][name] = number(r"= (\d[\d,]*) rows?", text)
    shown["input_files"]["screen of verify"] = number(r"input files +(\d[\d,]*)", verify)
    shown["input_files"]["page"] = number(r"with (\d[\d,]*) files? became", words)
    shown["rows"]["page"] = number(r"files? became (\d[\d,]*) rows?", words)
    assert "hit rate  \N{EN DASH}" not in status


def of_traces(shown: Shown, files: list[str]) -> None:
    """Add what the traces of the input files that are there now show of open quarantined ones."""
    by_name = {name: sum(not each.is_settled for each in trace("rows", name).quarantined) for name in files}
    named = Counter(
        each["uri"] for each in document("verify")["quarantined_files"] if not (each["redriven"] or each["settled_by"])
    )
    of_verify = {name: named[str(Path(name).absolute())] for name in files}
    shown["open versions by file"] |= {"trace": by_name, "verify": of_verify}


def of_disk(shown: Shown) -> None:
    """Add what is on the disk."""
    shown["verified output files"]["disk"] = len(with_rows())


@pytest.mark.parametrize(
    ("seed", "steps"),
    [
        *((seed, STEPS) for seed in SEEDS),
        *(pytest.param(seed, MANY_STEPS, marks=pytest.mark.full) for seed in MANY_SEEDS),
    ],
)
def test_figures_agree(seed: int, steps: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After each of many random things, all commands and screens show the same figures."""
    monkeypatch.chdir(tmp_path)
    History(seed).run(steps)
