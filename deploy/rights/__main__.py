"""Writes the rights of the tables into the templates: `python -m deploy.rights`."""

from deploy import ROOT
from deploy.rights.emr_grants import EMR_GRANTS, EMR_PLACES
from deploy.rights.template_text import Table, with_statements
from deploy.template_file import TEMPLATE

EMR_TEMPLATE = ROOT / "deploy" / "emr_serverless.yaml"
EMR = Table(EMR_GRANTS, EMR_PLACES, "!Ref KmsKeyArn")

if __name__ == "__main__":
    TEMPLATE.write_text(with_statements(TEMPLATE.read_text()))
    EMR_TEMPLATE.write_text(with_statements(EMR_TEMPLATE.read_text(), EMR))
