"""Opens catalogs: translates the settings to pyiceberg properties.

The properties for Glue and S3 Tables follow AWS's documentation. Neither was tried with an AWS account.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

from pyiceberg.catalog import Catalog
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.utils.config import Config
from requests import Session
from requests.adapters import HTTPAdapter

from compactor.adapters.iceberg.errors import reading
from compactor.core.errors import OperatorError
from compactor.core.extras import need

_CONNECT_SECONDS = 10.0
_ANSWER_SECONDS = 60.0


class PatientRestCatalog(RestCatalog):
    """A client with time-outs, but no retries: if a response is lost, the result of a commit is unknown.

    It follows no redirects. After some redirects the client would resend a commit as a GET, whose response looks like
    that of a commit.
    """

    def _config_headers(self, session: Session) -> None:
        super()._config_headers(session)  # the first step with a session, before it requests a token
        session.max_redirects = 0
        session.request = partial(session.request, timeout=(_CONNECT_SECONDS, _ANSWER_SECONDS))  # type: ignore[method-assign]

    def _create_session(self) -> Session:
        session = super()._create_session()
        for adapter in session.adapters.values():
            if isinstance(adapter, HTTPAdapter):
                adapter.max_retries = adapter.max_retries.new(total=0, connect=0, read=0, redirect=0, status=0, other=0)
        return session


Kind = Literal["rest", "glue", "s3tables", "sql"]

NAME = "compactor"
"""This process's name for the catalog; in a database it is part of each table's key."""

_USER = re.compile("//[^/@]*@")

_SIGNED = {"rest.sigv4-enabled": "true", "rest.sigv4.max-retries": "0"}
_STORE = {"s3.connect-timeout": "10", "s3.request-timeout": "60"}


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogPlace:
    """Where a catalog is.

    Attributes:
        kind: `rest`, or the REST endpoint of Glue or S3 Tables, which needs signed requests, or `sql`: a database.
        uri: The address of a REST catalog, or an SQLAlchemy URL; empty for the region's endpoint.
        warehouse: The catalog's warehouse name: for Glue the account number, for S3 Tables the bucket's ARN, for a
            database the folder of its tables.
        properties: Additional pyiceberg properties, such as `s3.endpoint`.
    """

    kind: Kind
    uri: str = ""
    warehouse: str = ""
    region: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)

    @property
    def shown(self) -> str:
        """The kind and address for messages, without a password."""
        return f"{self.kind} catalog {_USER.sub('//', self.uri)}".rstrip()


def catalog_properties(place: CatalogPlace) -> dict[str, Any]:
    """The pyiceberg properties for opening a catalog.

    Properties that are not in the settings, such as a token, come from pyiceberg's own configuration for a catalog with
    this name, for instance from the variable `PYICEBERG_CATALOG__COMPACTOR__TOKEN`.
    """
    properties = {**_STORE, **configured(), **({"s3.region": place.region} if place.region else {})}
    if place.kind in {"glue", "s3tables"}:
        properties |= _SIGNED
        properties |= {"rest.signing-name": place.kind, "rest.signing-region": place.region}
        properties["uri"] = place.uri or f"https://{place.kind}.{place.region}.amazonaws.com/iceberg"
    else:
        properties["uri"] = place.uri
    if place.warehouse:
        properties["warehouse"] = place.warehouse
    return properties | dict(place.properties)


def configured() -> dict[str, Any]:
    """The properties in pyiceberg's own configuration."""
    return dict(Config().get_catalog_config(NAME) or {})


def open_catalog(place: CatalogPlace) -> Catalog:
    """Open a catalog. This requests a REST catalog's configuration.

    Raises:
        StoreUnavailable: It does not respond.
        OperatorError: It refuses the request.
    """
    if place.kind in {"glue", "s3tables"}:
        need("aws")
        if not place.region:
            raise OperatorError(f"{place.shown}: no region -> expected aws.region in the settings")
    properties = catalog_properties(place)
    with reading(place.shown):
        if place.kind == "sql":
            # SQLAlchemy is slow to import
            from pyiceberg.catalog.sql import SqlCatalog  # noqa: PLC0415

            return SqlCatalog(NAME, **properties)
        return PatientRestCatalog(NAME, **properties)
