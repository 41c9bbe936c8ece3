"""Runs the native engine's tasks on this machine."""
