//! Sums of rows for Python, which verifies the module's output with them.

use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

use crate::row_sums::{DoubtfulLine, Given, LineReader, Malformed, RowSums, Sum, Values};
use crate::types_py::PyType;

/// An Arrow array: its offset; its validity bits, offsets and data, if it has them; and the arrays of its parts.
#[derive(FromPyObject)]
struct Array(usize, Option<PyBackedBytes>, Option<PyBackedBytes>, PyBackedBytes, Vec<Array>);

/// Rows as Python describes them: their number, columns by number, the maps of the rescued data, columns missing from the rows, columns whose values are a key's rescued ones, and the end of each sum.
#[derive(FromPyObject)]
struct PyRows {
    rows: usize,
    columns: Vec<(usize, Array)>,
    rescued: Option<Array>,
    moved: Vec<usize>,
    retired: Vec<(String, Array)>,
    ends: Vec<usize>,
}

/// A number of rows, and the sum of their digests.
type PySum = (u64, u128);

/// Adds up rows, and lines as the rows they should become. The Python package documents the calls.
#[pyclass(name = "RowSums", frozen)]
pub struct PyRowSums {
    sums: RowSums,
    /// Readers that no call is using.
    readers: Mutex<Vec<LineReader>>,
}

#[pymethods]
impl PyRowSums {
    #[new]
    fn new(columns: Vec<(String, PyType)>) -> PyResult<Self> {
        let columns = columns.into_iter().map(|(key, found)| Ok((key.into_bytes(), found.kind(0)?)));
        Ok(Self { sums: RowSums::new(columns.collect::<PyResult<_>>()?), readers: Mutex::default() })
    }

    fn lines(
        &self,
        py: Python<'_>,
        block: &[u8],
        constants: Vec<(String, String)>,
    ) -> (usize, usize, Vec<DoubtfulLine>, PySum) {
        let constants: Vec<(Vec<u8>, Vec<u8>)> =
            constants.into_iter().map(|(key, text)| (key.into_bytes(), text.into_bytes())).collect();
        let summed = py.detach(|| {
            let known = self.readers.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let mut reader = known.unwrap_or_else(|| self.sums.line_reader());
            let summed = self.sums.lines(&mut reader, block, &constants);
            self.readers.lock().unwrap_or_else(PoisonError::into_inner).push(reader);
            summed
        });
        (summed.lines, summed.blank_lines, summed.doubtful, of(summed.sum))
    }

    fn rows(&self, py: Python<'_>, given: PyRows) -> PyResult<Vec<PySum>> {
        let found = py.detach(move || {
            let PyRows { rows, columns, rescued, moved, retired, ends } = given;
            let given = Given {
                columns: columns.iter().map(|(number, array)| (*number, values(array))).collect(),
                rescued: rescued.as_ref().map(values),
                moved,
                retired: retired.iter().map(|(key, array)| (key.clone().into_bytes(), values(array))).collect(),
            };
            self.sums.rows(rows, &given, &ends)
        });
        match found {
            Ok(sums) => Ok(sums.into_iter().map(of).collect()),
            Err(Malformed) => Err(PyValueError::new_err("buffers that do not have these rows of these types")),
        }
    }
}

fn values(Array(offset, valid, offsets, data, parts): &Array) -> Values<'_> {
    let parts = parts.iter().map(values).collect();
    Values { offset: *offset, valid: valid.as_deref(), offsets: offsets.as_deref(), data, parts }
}

fn of(sum: Sum) -> PySum {
    (sum.rows, sum.total)
}
