"""Puts a release on the job of one stream before the others, and takes it back again."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from compactor import __version__
from compactor.core.errors import SettingsError
from compactor.settings.settings import Settings
from deploy import ROOT
from deploy.canary import Canary, canary_of, release_of, resources_of, with_canary, without_canary
from deploy.canary_fit import LATER, check_fit
from deploy.checkout import Checkout, NewSession, read_checkout, read_settings
from deploy.resolved import Document, Filler, pseudo_parameters
from deploy.stack import Deployed, DeploymentError, Stack
from deploy.steps import account_of, apply_template, plan_lines, run_checks

CHECKS = ("stack", "artefacts", "artefact bucket", "Glue quota", "region", "price")


def deploy_canary(
    environment: str, new_session: NewSession, *, confirm: Callable[[], bool], root: Path = ROOT
) -> Settings | None:
    """Put the release of a checkout on the job of the stream with `canary = true`, and on nothing else.

    Returns:
        The settings of the stream; None if the change was not confirmed.

    Raises:
        SettingsError: The settings name no canary, or the stack does not fit them.
        DeploymentError: The stack is not deployed, changed meanwhile, or CloudFormation refused something.
    """
    checkout = read_checkout(environment, new_session, root)
    stream = _canary_stream(checkout.settings)
    missing = checkout.missing()
    click.echo("\n".join(plan_lines(checkout, missing)))
    run_checks(checkout, is_new=not _stack(checkout.session, checkout.settings).exists(), only=CHECKS)
    found = _deployed(checkout.session, checkout.settings, environment)
    check_fit(checkout, found, stream)
    new, old = _filler(checkout), _filler(checkout, found)
    resources = {name: new.value(checkout.template["Resources"][name]) for name in resources_of(stream)}
    document = with_canary(found.template, old, resources, stream, __version__)
    others = release_of(found.template)
    click.echo("\n".join(_canary_lines(stream.name, __version__, others, checkout.parameters, found.parameters)))
    stack = _stack(checkout.session, checkout.settings, found.tags)
    outcome = apply_template(
        stack,
        checkout.session,
        document,
        found.parameters,
        confirm=confirm,
        missing=missing,
        check=lambda: _check_same(stack, found),
    )
    return None if outcome == "declined" else stream


def withdraw_canary(
    environment: str, new_session: NewSession, *, confirm: Callable[[], bool], root: Path = ROOT
) -> tuple[Canary, str] | None:
    """Put the job of the canary back on the release of all others, whatever the checkout is of.

    Returns:
        The canary, and the release of the others if it is known; None if there was none, or it was not confirmed.
    """
    settings, session = read_settings(environment, new_session, root)
    found = _deployed(session, settings, environment)
    canary = canary_of(found.template)
    if canary is None:
        click.echo("No stream has its own release; nothing to change.")
        return None
    others = release_of(found.template)
    click.echo(f"The job of {canary.stream} returns from release {canary.release} to {others or 'that of the others'}.")
    stack = _stack(session, settings, found.tags)
    document = without_canary(found.template)
    outcome = apply_template(
        stack, session, document, found.parameters, confirm=confirm, check=lambda: _check_same(stack, found)
    )
    return None if outcome == "declined" else (canary, others)


def about_canary(checkout: Checkout, deployed: Document) -> Iterator[str]:
    """What a deployment to all does to the canary, in lines of text; none without one."""
    canary = canary_of(deployed)
    if canary is None:
        return
    [job_id] = [name for name, each in canary.before.items() if each["Type"] == "AWS::Glue::Job"]
    job = checkout.template["Resources"].get(job_id)
    if job is None:
        then = "deletes this stream's job, because the settings no longer have it"
    elif _filler(checkout).value(job) == deployed["Resources"][job_id]:
        then = f"brings all else to release {__version__}, and leaves this job as it is"
    else:
        then = f"brings all to release {__version__}, with other artefacts or settings than this job has"
    others = f", all else {release_of(deployed)}" if release_of(deployed) else ""
    yield f"Canary: the job of {canary.stream} has release {canary.release}{others}. This deployment {then}."
    yield ""


def _canary_stream(settings: Settings) -> Settings:
    if settings.service != "Glue":
        raise SettingsError(
            [f"the job runs on {settings.service} -> expected no such section: a canary needs a job on Glue"]
        )
    if settings.canary is None:
        raise SettingsError(['streams: none has canary = true -> expected one, with job = "own"'])
    return settings.canary


def _stack(session: Any, settings: Settings, tags: Mapping[str, str] | None = None) -> Stack:
    """The stack, with its own tags if it is changed: others would change every resource."""
    return Stack(session.client("cloudformation"), settings.control.job_name, tags=tags or {})


def _deployed(session: Any, settings: Settings, environment: str) -> Deployed:
    stack = _stack(session, settings)
    if not stack.exists():
        raise DeploymentError(f"stack {stack.name}: not deployed; run make deploy ENV={environment} first")
    return stack.deployed()


def _filler(checkout: Checkout, found: Deployed | None = None) -> Filler:
    """What fills in the values that a checkout or a stack gives."""
    given = found or checkout
    pseudo = pseudo_parameters(checkout.session.region_name, account_of(checkout.session))
    return Filler(given.template, {**pseudo, **given.parameters})


def _canary_lines(
    stream: str, release: str, others: str, wanted: Mapping[str, str], deployed: Mapping[str, str]
) -> Iterator[str]:
    told = f" {others}" if others else "s that are deployed"
    yield f"Canary: the job of {stream} gets release {release}. All else keeps release{told}, the functions too."
    later = [name for name in LATER if name in deployed and wanted.get(name, deployed[name]) != deployed[name]]
    if later:
        yield f"These change only with the deployment to all: {', '.join(later)}."
    yield ""


def _check_same(stack: Stack, found: Deployed) -> None:
    """Check that the stack is still what the change set was made from."""
    if stack.changed_at() != found.changed_at:
        raise DeploymentError(f"stack {stack.name}: a concurrent deployment changed it; deploy again")
