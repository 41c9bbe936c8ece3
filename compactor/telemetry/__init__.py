"""Log events, metrics and the wording of errors."""
