"""The demo of the compactor on one machine, without an AWS account."""
