"""Rules by which several parts of the system decide. No I/O."""
