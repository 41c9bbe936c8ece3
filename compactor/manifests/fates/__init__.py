"""Decides what became of listed files, by what manifests have of them."""
