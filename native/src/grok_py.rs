//! Python's interface for reading lines with a grok pattern.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::grok::{Decoder, Fault, captures, expand};
use crate::{KernelError, panic_text, python_bytes};

/// How many bytes of records are made at once.
const CHUNK_BYTES: usize = 1024 * 1024;

/// A pattern's expression, and the key and the type of each of its captures, in group order. A `ValueError` describes a
/// fault in the pattern.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // Python's values are copied
pub fn expanded(pattern: &str, own: HashMap<String, String>) -> PyResult<(String, Vec<(String, String)>)> {
    let found: Result<_, String> = guarded(|| {
        let found = expand(pattern, &own)?;
        let captures = captures(&found)?;
        Ok((found.regex, captures))
    })?;
    found.map_err(PyValueError::new_err)
}

/// Converts lines to records. Keeps no state between calls.
#[pyclass(frozen)]
pub struct LineDecoder(Decoder);

type PyChunk<'py> = (usize, usize, Bound<'py, PyBytes>, Vec<(usize, usize, usize, Bound<'py, PyString>)>);

#[pymethods]
impl LineDecoder {
    #[new]
    #[allow(clippy::needless_pass_by_value)] // as above
    fn new(regex: &str, keys: Vec<String>, max_steps: usize) -> PyResult<Self> {
        guarded(|| Decoder::new(regex, &keys, max_steps))?.map(Self).map_err(PyValueError::new_err)
    }

    /// The start of the next lines, the number of lines, their records, and the lines that are not records.
    fn decode<'py>(&self, py: Python<'py>, block: &[u8], from: usize) -> PyResult<PyChunk<'py>> {
        let chunk = py.detach(|| guarded(|| self.0.decode(block, from, CHUNK_BYTES)))?;
        let refused = chunk.refused.into_iter();
        let refused = refused.map(|(number, start, end, fault)| (number, start, end, reason(py, fault))).collect();
        Ok((chunk.end, chunk.lines, python_bytes(py, &chunk.json)?, refused))
    }
}

pub fn guarded<T>(work: impl FnOnce() -> T) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| KernelError::new_err(panic_text(&*panic)))
}

fn reason(py: Python<'_>, fault: Fault) -> Bound<'_, PyString> {
    let reason = match fault {
        Fault::NoText => intern!(py, "invalid_utf8"),
        Fault::NoMatch => intern!(py, "no_match"),
        Fault::TooCostly => intern!(py, "match_too_costly"),
    };
    reason.clone()
}
