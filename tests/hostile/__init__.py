"""A hostile producer: attacks as data, each beside honest manifests that must not notice.

`python -m tests.hostile` measures time, memory and scratch space of each attack; `make test` runs one of each kind.
"""
