"""`compactor restore`: makes the earlier version of a record of the job the current one."""

from dataclasses import dataclass
from datetime import datetime

import click

from compactor.cli.invocation import Invocation, reporting
from compactor.cli.ui.failures import confirm
from compactor.cli.ui.output import print_result
from compactor.cli.ui.terminal import echo
from compactor.core.layout import is_within
from compactor.core.text.formatting import size
from compactor.wiring import operating
from compactor.wiring.app import App


@dataclass(frozen=True, slots=True)
class Restored:
    """The version of an object that is current again. With `--dry-run` nothing is written."""

    uri: str  # the object
    version_id: str  # S3 names the version by this
    written_at: datetime  # when this version was written
    size_bytes: int  # its size
    dry_run: bool  # whether nothing was written


@click.command("restore")
@click.argument("uri", metavar="OBJECT")
@click.option("--version", "version_id", default="", metavar="ID", help="Restore this version, as S3 names it.")
@click.option("--dry-run", is_flag=True, help="Write nothing; show the version.")
@click.option("--yes", is_flag=True, help="Do not prompt.")
@reporting(Restored)
def restore(invocation: Invocation, *, uri: str, version_id: str, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Restore the earlier version of a damaged or deleted record of the job.

    OBJECT is a record, a manifest or a staged file in S3 that an error names. The bucket has to keep versions: the
    deployed work bucket does for RestoreDays, and for a day those of manifests and staged files. The damaged version
    stays below the restored one.

    Exit codes: 1 cancelled at the prompt, the bucket keeps no earlier version, or it was restored already.
    """
    settings = invocation.deployment()
    places = (settings.paths.state, settings.paths.manifests)
    if not any(is_within(uri, place) for place in places):
        raise click.BadParameter(f"{uri}: expected an object within {' or '.join(places)}", param_hint="OBJECT")
    found, bring_back = operating.earlier_version(App(settings), uri, version_id)
    version = f"the version of {found.modified_at:%Y-%m-%d %H:%M:%S} UTC, {size(found.size_bytes)}"
    if not (dry_run or yes):
        confirm("restore", version, question=f"Restore {version}?", done="restored")
    if not dry_run:
        bring_back()
    result = Restored(uri, found.version_id, found.modified_at, found.size_bytes, dry_run)
    shown = f"{'Would restore' if dry_run else 'Restored'} {version}"
    print_result(result, lambda _: echo(shown), as_json=as_json)
