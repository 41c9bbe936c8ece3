"""The native engine, which passes bins of files to the kernel."""
