"""Tells which stage of the work takes the CPU time of `compactor compact`, and what each stage would take at best."""
