"""The template passes cfn-lint."""

from pathlib import Path

from cfnlint.api import lint_file

from deploy.template_file import TEMPLATE


def test_cfn_lint_finds_nothing(tmp_path: Path) -> None:
    """The linter accepts the template, and still finds a property that does not exist."""
    assert [str(match) for match in lint_file(TEMPLATE)] == []
    broken = tmp_path / "template.yaml"
    broken.write_text("Resources: { Queue: { Type: AWS::SQS::Queue, Properties: { MaxRetry: 0 } } }")
    assert any("MaxRetry" in str(match) for match in lint_file(broken))
