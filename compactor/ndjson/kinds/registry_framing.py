"""Recognises values that the serializers of a schema registry wrote: a magic byte, the id of a schema, then the data.

The formats are those of the documents of both registries: "Wire format" of Confluent, and the header of the serializers
of the AWS Glue Schema Registry.
"""

from compactor.ndjson.kinds.kind import Kind

HEAD_BYTES = 18
"""How much of a value is needed."""

_CONFLUENT, _GLUE = 0, 3  # magic bytes
_GLUE_COMPRESSIONS = (0, 5)
_ID_BYTES = 4
_MOVE = "Avro, Protobuf and other data of a registry are not read: expected JSON as plain text"


def registry_kind(value: bytes) -> Kind | None:
    """The kind of a value by its first bytes; None if no registry is to be seen.

    A record is one line, in which line feeds were replaced by carriage returns: an id with either is not named.
    """
    if len(value) < 1 + _ID_BYTES:
        return None
    schema = value[1 : 1 + _ID_BYTES]
    if value[0] == _CONFLUENT and any(schema):  # ids begin at 1; a file of zeros has none
        named = "" if b"\r" in schema else f", schema {int.from_bytes(schema, 'big')}"
        return Kind(f"values of a schema registry (magic byte 0{named})", _MOVE)
    if len(value) >= HEAD_BYTES and value[0] == _GLUE and value[1] in _GLUE_COMPRESSIONS:
        return Kind("values of the AWS Glue Schema Registry (magic byte 3)", _MOVE)
    return None
