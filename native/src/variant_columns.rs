//! How Parquet names columns of VARIANTs, and how it keeps them.

use std::sync::Arc;

use arrow_schema::{FieldRef, Schema};
use parquet::arrow::ArrowSchemaConverter;
use parquet::basic::{LogicalType, Repetition};
use parquet::errors::Result;
use parquet::file::properties::{EnabledStatistics, WriterPropertiesBuilder};
use parquet::schema::types::{ColumnPath, SchemaDescriptor, Type, TypePtr};

use crate::columns::{ColumnKind, VARIANT_METADATA, VARIANT_VALUE};
use crate::values::Kind;

/// The version of the specification of VARIANT.
const SPECIFICATION: i8 = 1;

/// Parquet's schema of some columns, in which those of VARIANTs are said to be such.
///
/// # Errors
///
/// Arrow has a type that Parquet lacks, which would be a fault of this module.
pub fn parquet_schema(schema: &Schema) -> Result<SchemaDescriptor> {
    let plain = ArrowSchemaConverter::new().convert(schema)?;
    let root = plain.root_schema();
    let columns = schema.fields().iter().zip(root.get_fields());
    let fields = columns.map(|(field, column)| if is_variant(field) { annotated(column) } else { Ok(column.clone()) });
    let root = Type::group_type_builder(root.name()).with_fields(fields.collect::<Result<_>>()?).build()?;
    Ok(SchemaDescriptor::new(Arc::new(root)))
}

/// Keeps no bounds of binary forms, whose order means nothing, and no dictionary of values.
pub fn set_properties(schema: &Schema, mut properties: WriterPropertiesBuilder) -> WriterPropertiesBuilder {
    for field in schema.fields().iter().filter(|field| is_variant(field)) {
        let half = |name: &str| ColumnPath::new(vec![field.name().clone(), name.to_owned()]);
        properties = properties
            .set_column_statistics_enabled(half(VARIANT_METADATA), EnabledStatistics::None)
            .set_column_statistics_enabled(half(VARIANT_VALUE), EnabledStatistics::None)
            .set_column_dictionary_enabled(half(VARIANT_VALUE), false);
    }
    properties
}

fn is_variant(field: &FieldRef) -> bool {
    *field.data_type() == ColumnKind::Typed(Kind::Variant).data_type()
}

fn annotated(column: &TypePtr) -> Result<TypePtr> {
    let info = column.get_basic_info();
    let group = Type::group_type_builder(info.name())
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(Some(LogicalType::variant(Some(SPECIFICATION))))
        .with_id(info.has_id().then(|| info.id()))
        .with_fields(column.get_fields().to_vec());
    group.build().map(Arc::new)
}
