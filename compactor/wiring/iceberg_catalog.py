"""Makes the catalog of a table sink from the settings."""

from compactor.settings.settings import Settings
from compactor.table.catalog import TableCatalog

_OF_GLUE = "_table"  # hidden from readers of the plain files below the output


def iceberg_catalog(settings: Settings) -> TableCatalog:
    """The catalog in the settings, which is connected to when it is first used.

    Raises:
        ExtraMissing: pyiceberg is not installed, or for Glue and S3 Tables boto3.
    """
    from compactor.adapters.iceberg.iceberg_table import IcebergTable  # noqa: PLC0415 - an extra
    from compactor.adapters.iceberg.opening import CatalogPlace  # noqa: PLC0415 - an extra

    table, aws = settings.table, settings.aws
    place = CatalogPlace(
        kind=table.catalog,
        uri=table.uri,
        warehouse=table.warehouse,
        region=aws.region,
        properties={"s3.endpoint": aws.endpoint_url} if aws.endpoint_url else {},
    )
    # Glue asks for the place of a new table; other catalogs choose one in their warehouse.
    location = f"{settings.paths.output.rstrip('/')}/{_OF_GLUE}" if table.catalog == "glue" else ""
    return IcebergTable(place=place, name=table.name, metadata_columns=settings.metadata_columns, location=location)
