//! The minimum and maximum text of each page, by which readers skip pages.

use parquet::basic::{BoundaryOrder, Type};
use parquet::errors::Result;
use parquet::file::metadata::ColumnIndexBuilder;
use parquet::file::page_index::column_index::ColumnIndexMetaData;

use super::bounds::Bounds;

pub struct PageIndex {
    builder: ColumnIndexBuilder,
    bytes: usize,
    /// The bounds of the last page that has texts.
    last: Option<(Vec<u8>, Vec<u8>)>,
    is_ascending: bool,
    is_descending: bool,
}

impl Default for PageIndex {
    fn default() -> Self {
        let builder = ColumnIndexBuilder::new(Type::BYTE_ARRAY);
        Self { builder, bytes: 0, last: None, is_ascending: true, is_descending: true }
    }
}

impl PageIndex {
    /// Adds a page. After one whose maximum is not known, there is no index.
    pub fn add(&mut self, bounds: &Bounds, nulls: usize) {
        let nulls = i64::try_from(nulls).unwrap_or(i64::MAX);
        let (min, max) = match bounds.short() {
            None => return self.builder.append(true, Vec::new(), Vec::new(), nulls, None),
            Some((_, None)) => return self.builder.to_invalid(),
            Some((min, Some(max))) => (min.to_vec(), max),
        };
        if let Some((last_min, last_max)) = &self.last {
            self.is_ascending &= *last_min <= min && *last_max <= max;
            self.is_descending &= *last_min >= min && *last_max >= max;
        }
        self.bytes += min.len() + max.len();
        self.builder.append(false, min.clone(), max.clone(), nulls, None);
        self.last = Some((min, max));
    }

    pub fn memory_bytes(&self) -> usize {
        self.bytes
    }

    /// # Errors
    ///
    /// The index is not one of texts, which would be a fault in this module.
    pub fn build(mut self) -> Result<Option<ColumnIndexMetaData>> {
        self.builder.set_boundary_order(match (self.is_ascending, self.is_descending) {
            (true, _) => BoundaryOrder::ASCENDING,
            (_, true) => BoundaryOrder::DESCENDING,
            _ => BoundaryOrder::UNORDERED,
        });
        if self.builder.valid() { self.builder.build().map(Some) } else { Ok(None) }
    }
}
