//! Column types as Python describes them.

use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::columns::ColumnKind;
use crate::nested::{Nested, Shape};

/// A type: its kind with the kind's parameters; a struct's keys; and the types of its parts.
#[derive(FromPyObject)]
pub struct PyType {
    kind: String,
    precision: u8,
    scale: i8,
    epoch: Option<String>,
    names: Vec<String>,
    parts: Vec<PyType>,
}

impl PyType {
    /// The content of a column of this type.
    ///
    /// # Arguments
    ///
    /// * `field_id` - The column's id in tables, 0 for none. Its parts have the next ones, in reading order.
    ///
    /// # Errors
    ///
    /// `ValueError`: there is no such type.
    pub fn kind(&self, field_id: i32) -> PyResult<ColumnKind> {
        self.with_parts(&mut (field_id + 1), field_id != 0)
    }

    fn with_parts(&self, next: &mut i32, has_ids: bool) -> PyResult<ColumnKind> {
        let mut ids = Vec::new();
        let mut id = |next: &mut i32| {
            ids.push(if has_ids { *next } else { 0 });
            *next += 1;
        };
        if self.kind == "map" {
            id(next); // of its keys
        }
        let parts = self.parts.iter().map(|part| {
            id(next);
            part.with_parts(next, has_ids)
        });
        let mut parts: Vec<ColumnKind> = parts.collect::<PyResult<_>>()?;
        let shape = match (self.kind.as_str(), parts.len()) {
            ("list", 1) => Shape::List(parts.remove(0)),
            ("map", 1) => Shape::Map(parts.remove(0)),
            ("struct", 1..) if parts.len() == self.names.len() => {
                Shape::Struct(self.names.iter().map(|name| name.as_str().into()).zip(parts).collect())
            }
            _ => {
                let kind = ColumnKind::parse(&self.kind, self.precision, self.scale, self.epoch.as_deref());
                return kind.map_err(PyValueError::new_err);
            }
        };
        Ok(ColumnKind::Nested(Arc::new(Nested::new(shape, &ids))))
    }
}
