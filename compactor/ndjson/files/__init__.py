"""Reads whole files, tries again where the store refuses, and writes their rejects."""
