"""The demo of the compactor on one machine, without an AWS account."""

from compactor.core.extras import need

need("demo")
