"""Writes the rights of the tables into the templates: `python -m deploy.rights`."""

from deploy import ROOT
from deploy.rights.runtime_grants import RUNTIME_GRANTS, RUNTIME_PLACES
from deploy.rights.template_text import Table, with_statements
from deploy.template_file import TEMPLATE

RUNTIME_TEMPLATE = ROOT / "deploy" / "runtime.yaml"
RUNTIME = Table(RUNTIME_GRANTS, RUNTIME_PLACES, "!Ref KmsKeyArn")

if __name__ == "__main__":
    TEMPLATE.write_text(with_statements(TEMPLATE.read_text()))
    RUNTIME_TEMPLATE.write_text(with_statements(RUNTIME_TEMPLATE.read_text(), RUNTIME))
