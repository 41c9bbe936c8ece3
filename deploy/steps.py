"""The steps that deployments of an environment have in common: show, check, ask, apply."""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from hashlib import sha256
from typing import Any, Literal

import click
from botocore.config import Config

from compactor import __version__
from compactor.core.errors import SettingsError
from compactor.schema.registry import EMPTY_SCHEMA
from compactor.wiring.app import App
from deploy.artefacts import Artefact, artefact_key
from deploy.canary import with_release
from deploy.checkout import Checkout
from deploy.ending import control_rules, jobs_ended
from deploy.preflight import Preflight, faults_of, result_lines
from deploy.resolved import Document
from deploy.stack import Deployed, Stack, change_lines, deleted_jobs, has_native_engine
from deploy.streams import logical_id
from deploy.template_file import with_columns

HURRIED = Config(connect_timeout=5, read_timeout=10, retries={"mode": "standard", "total_max_attempts": 2})
"""For checks, of which none is worth a long wait."""

Outcome = Literal["same", "declined", "done"]
"""Whether the stack was as the template says, or is so now."""


def run_checks(
    checkout: Checkout, *, is_new: bool, only: Sequence[str] = (), keeps_engine_of: Deployed | None = None
) -> None:
    """Show what the checks find; a `SettingsError` has what would make the deployment fail.

    `only` names the checks to run; by default all. `keeps_engine_of` is a stack whose native engine must stay.
    """
    checks = Preflight(
        session=checkout.session,
        client=partial(checkout.session.client, config=HURRIED),
        account=account_of(checkout.session),
        template=checkout.template,
        parameters=checkout.parameters,
        files=checkout.files,
        is_new=is_new,
        has_native=keeps_engine_of is not None and has_native_engine(keeps_engine_of),
    )
    results = list(checks.results(only))
    click.echo("\n".join(result_lines(results)))
    if faults := faults_of(results):
        raise SettingsError(faults)


def document_of(checkout: Checkout, *, is_new: bool) -> Document:
    """The whole template of a checkout: with its release, and with the columns that are known now in its tables."""
    template, settings = checkout.template, checkout.settings
    for each in settings.streams or (settings,):
        schema = EMPTY_SCHEMA if is_new else App(each).registry.latest()
        table_id = logical_id("EventsTable", each) if settings.streams else "EventsTable"
        template = with_columns(template, schema, each.metadata_columns, table_id)
    return with_release(template, __version__)


def apply_template(
    stack: Stack,
    session: Any,
    document: Mapping[str, Any],
    parameters: Mapping[str, str],
    *,
    confirm: Callable[[], bool],
    missing: Sequence[Artefact] = (),
    check: Callable[[], None] = lambda: None,
) -> Outcome:
    """Show the changes that a template makes, and make them if that is confirmed.

    The runs of jobs that it deletes end first.

    `missing` are artefacts to upload before. `check` is called once the change set is there, before anyone is asked; it
    raises if the change set must not be executed.
    """
    s3, bucket = session.client("s3"), parameters["ArtefactBucketName"]
    key = _upload_template(s3, parameters, document)
    resources = stack.resources() if stack.exists() else {}
    change_set = f"{stack.name}-{time.time_ns()}"
    changes = stack.propose(change_set, f"https://{bucket}.s3.{session.region_name}.amazonaws.com/{key}", parameters)
    if changes is None:
        click.echo("Nothing to change.")
        return "same"
    try:
        check()
    except BaseException:
        stack.discard(change_set)
        raise
    click.echo("\n".join(change_lines(changes)))
    deleted = [resources[name] for name in deleted_jobs(changes) if name in resources]
    for name in deleted:
        click.echo(f"Job {name} will be deleted; its runs finish the manifests in flight before.")
    if not confirm():
        stack.discard(change_set)
        click.echo("Nothing was changed.")
        return "declined"
    for each in missing:
        s3.upload_file(str(each.path), bucket, each.key)
    with ExitStack() as ended:
        try:
            rules = control_rules(document, resources)
            ended.enter_context(jobs_ended(session, rules, deleted))
        except BaseException:
            stack.discard(change_set)
            raise
        stack.execute(change_set)
    click.echo("\n".join(["Deployed.", *(f"  {name}  {value}" for name, value in stack.outputs().items())]))
    return "done"


def account_of(session: Any) -> str:
    """The id of the account of a session."""
    return str(session.client("sts").get_caller_identity()["Account"])


def plan_lines(checkout: Checkout, missing: Sequence[Artefact]) -> Iterator[str]:
    """Account, parameters and artefacts as lines of text."""
    parameters, session = checkout.parameters, checkout.session
    width = max(map(len, parameters))
    yield from (f"Stack {parameters['JobName']}, account {account_of(session)}, {session.region_name}", "")
    yield "Parameters"
    yield from (f"  {name:{width}}  {value or '(empty)'}" for name, value in parameters.items())
    yield from ("", "Artefacts")
    for each in checkout.files:
        action = "upload" if each in missing else "exists"
        place = f"s3://{parameters['ArtefactBucketName']}/{each.key}"
        yield f"  {action}  sha256 {each.sha256[:16]}  {each.size_bytes:>12,} bytes  {each.path.name} -> {place}"
    yield ""


def _upload_template(s3: Any, parameters: Mapping[str, str], document: Mapping[str, Any]) -> str:
    """Upload the template, which is too large to send with a request, and return its key."""
    body = json.dumps(document, separators=(",", ":")).encode()
    key = artefact_key(parameters["Environment"], "Template", sha256(body).hexdigest(), "json")
    s3.put_object(Bucket=parameters["ArtefactBucketName"], Key=key, Body=body)
    return key
