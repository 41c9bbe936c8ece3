"""The operator's commands, one package each."""
