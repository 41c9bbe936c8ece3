"""Writes the rights of the table into the template: `python -m deploy.rights`."""

from deploy.rights.template_text import with_statements
from deploy.template_file import TEMPLATE

if __name__ == "__main__":
    TEMPLATE.write_text(with_statements(TEMPLATE.read_text()))
