"""Packages the compactor and deploys it to AWS. Not part of the wheel."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
