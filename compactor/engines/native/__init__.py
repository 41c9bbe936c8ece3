"""The native engine, which hands bins of files to the kernel."""
