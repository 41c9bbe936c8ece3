"""The JSON documents that commands print, as types: the source of the JSON Schemas in `compactor/cli/schemas`."""
