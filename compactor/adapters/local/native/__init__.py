"""Runs the tasks of the native engine on this machine."""
