"""Decisions that several folders share: when to try again, and how to divide work. No I/O."""
