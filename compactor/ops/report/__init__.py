"""Reports on a period of work, as figures and as one HTML page."""
