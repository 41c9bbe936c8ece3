"""Ends a command of the deployment with an exit code, and with what is wrong in place of a traceback."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click
from botocore.exceptions import BotoCoreError, ClientError

from compactor.core.errors import CompactorError, SettingsError
from deploy.stack import DeploymentError


@contextmanager
def told_errors() -> Iterator[None]:
    """Exit with code 2 for wrong settings, and with code 1 for what else was foreseen."""
    try:
        yield
    except SettingsError as exc:
        _exit(2, *exc.faults)
    except (CompactorError, DeploymentError) as exc:
        _exit(1, str(exc))
    except (ClientError, BotoCoreError) as exc:
        _exit(1, f"AWS refused: {exc}")


def _exit(code: int, *lines: str) -> None:
    for line in lines:
        click.echo(line, err=True)
    sys.exit(code)
