"""The screens of `compactor status`."""
