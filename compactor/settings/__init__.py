"""The settings: sections, types, validation and the template of a settings file."""
