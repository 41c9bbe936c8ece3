"""Implementations of the ports: in memory, on a local disk, on AWS and on Spark. Importing this package loads none."""
