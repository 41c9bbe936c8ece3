"""The ports on a local disk and the machine this runs on."""
