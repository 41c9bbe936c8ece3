"""What is on record about manifests, and what follows from it."""
