"""Log events, metrics and descriptions of errors."""
