"""Removes by age what is committed and done, and what nobody owns any more."""
