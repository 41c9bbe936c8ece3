"""Packages the compactor and puts it on AWS. No part of the package itself."""
