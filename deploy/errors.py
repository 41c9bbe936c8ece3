"""What may go wrong before anything is deployed."""


class PackagingError(Exception):
    """Something cannot be packaged as it is."""
