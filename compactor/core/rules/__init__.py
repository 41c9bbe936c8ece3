"""Decisions that several folders share: when to retry, and how to divide work. No I/O."""
