"""Writes an environment's stack for other tools: `python -m deploy.render dev` fills dist/stack/dev.

Terraform and CDK then create the stack: `deploy/terraform` and `deploy/README.md` show how.
"""

import json
from pathlib import Path

import click
from boto3.session import Session

from deploy import ROOT
from deploy.checkout import NewSession, read_checkout
from deploy.ending import jobs_gone
from deploy.exits import told_errors
from deploy.stack import Stack
from deploy.steps import document_of, run_checks


@click.command()
@click.argument("environment")
def main(environment: str) -> None:
    """Check ENVIRONMENT, and write its template and stack.json, which lists names, parameters and files to upload."""
    with told_errors():
        for path in render(environment, Session):
            click.echo(str(path.relative_to(ROOT)))


def render(environment: str, new_session: NewSession, root: Path = ROOT) -> list[Path]:
    """Write the template and the description of a stack; returns their paths.

    `new_session` creates a boto3 session for a `region_name`. The root has config/, deploy/parameters/ and dist/.
    """
    checkout = read_checkout(environment, new_session, root)
    parameters = dict(checkout.parameters)
    stack = Stack(checkout.session.client("cloudformation"), parameters["JobName"])
    is_new = not stack.exists()
    found = None if is_new else stack.deployed()
    run_checks(checkout, is_new=is_new, keeps_engine_of=found)
    for name in jobs_gone(found, checkout) if found else ():
        end = "its runs would live on unseen: run make deploy, which ends them first"
        click.echo(f"Job {name} is not in the template any more, and {end}", err=True)
    folder = root / "dist" / "stack" / environment
    folder.mkdir(parents=True, exist_ok=True)
    template, described = folder / "template.json", folder / "stack.json"
    template.write_text(json.dumps(document_of(checkout, is_new=is_new), separators=(",", ":")))
    about = {
        "name": parameters["JobName"],
        "region": checkout.session.region_name,
        "bucket": parameters["ArtefactBucketName"],
        "template": str(template),
        "parameters": parameters,
        "tags": {"application": "compactor", **checkout.tags},
        "files": {each.key: str(each.path) for each in checkout.files},
    }
    described.write_text(json.dumps(about, indent=2) + "\n")
    return [template, described]


if __name__ == "__main__":
    main()
