"""Everything for trying the compactor on one machine, without an AWS account."""
