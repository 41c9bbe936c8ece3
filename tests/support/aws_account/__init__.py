"""An AWS account in memory that refuses what AWS refuses. Each refusal names the rule, its page and its sentence."""
