"""Opens catalogues: what the settings say, as properties of pyiceberg.

Those of Glue and S3 Tables are as the documents of AWS give them. Neither was tried with an account of AWS.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pyiceberg.catalog import Catalog

from compactor.adapters.iceberg.errors import reading
from compactor.adapters.iceberg.rest import PatientRestCatalog
from compactor.core.extras import need

Kind = Literal["rest", "glue", "s3tables", "sql"]

_NAME = "compactor"  # of the catalogue in this process; in a database it is part of the key of each table

_SIGNED = {"rest.sigv4-enabled": "true", "rest.sigv4.max-retries": "0"}
_STORE = {"s3.connect-timeout": "10", "s3.request-timeout": "60"}


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogPlace:
    """Where a catalogue is.

    Attributes:
        kind: `rest`, or Glue's or S3 Tables' REST endpoint, which need signed requests, or `sql`: a database.
        uri: The address: of a REST catalogue, or a URL of SQLAlchemy; empty for the endpoint of the region.
        warehouse: What the catalogue calls the warehouse: for Glue the number of the account, for S3 Tables the ARN of
            the bucket, for a database the folder of its tables.
        region: Of AWS.
        properties: Further properties of pyiceberg, such as `token` or `s3.endpoint`.
    """

    kind: Kind
    uri: str = ""
    warehouse: str = ""
    region: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)


def catalog_properties(place: CatalogPlace) -> dict[str, str]:
    """The properties by which pyiceberg opens a catalogue."""
    properties = {**_STORE, **({"s3.region": place.region} if place.region else {})}
    if place.kind in {"glue", "s3tables"}:
        properties |= _SIGNED
        properties |= {"rest.signing-name": place.kind, "rest.signing-region": place.region}
        properties["uri"] = place.uri or f"https://{place.kind}.{place.region}.amazonaws.com/iceberg"
    else:
        properties["uri"] = place.uri
    if place.warehouse:
        properties["warehouse"] = place.warehouse
    return properties | dict(place.properties)


def open_catalog(place: CatalogPlace) -> Catalog:
    """Open a catalogue. One with REST is asked for its own configuration.

    Raises:
        StoreUnavailable: It does not answer.
        OperatorError: It refuses.
    """
    properties = catalog_properties(place)
    if place.kind in {"glue", "s3tables"}:
        need("aws")
    with reading(f"catalogue {properties['uri']}"):
        if place.kind == "sql":
            from pyiceberg.catalog.sql import SqlCatalog  # noqa: PLC0415 - SQLAlchemy is slow to import

            return SqlCatalog(_NAME, **properties)
        return PatientRestCatalog(_NAME, **properties)
