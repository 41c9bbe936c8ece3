//! Finds the records of JSON documents for Python.

use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::{PyIndexError, PyMemoryError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::elements::{Block, Fault, Found, Refusal, Rules, Scanner};
use crate::grok_py::guarded;
use crate::memory::NoRoom;
use crate::python_bytes;

/// The Python package documents the calls.
#[pyclass(frozen)]
pub struct ElementScanner(Mutex<Scanner>);

type PyRefusal<'py> = (usize, &'static str, Bound<'py, PyBytes>, Bound<'py, PyBytes>, bool);
type PyFault = (&'static str, usize, String);
type PyFound<'py> = (Option<ElementBlock>, Option<PyRefusal<'py>>, Option<PyFault>);

impl ElementScanner {
    /// Does some work without Python's lock.
    fn run<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut Scanner) -> Result<T, NoRoom> + Send) -> PyResult<T> {
        let done = py.detach(|| guarded(|| work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))))?;
        done.map_err(|NoRoom { bytes }| PyMemoryError::new_err(format!("{bytes} bytes")))
    }
}

#[pymethods]
impl ElementScanner {
    #[new]
    fn new(
        steps: Vec<Option<String>>,
        keep: Vec<(String, Vec<u8>)>,
        max_bytes: usize,
        block_bytes: usize,
        max_held: usize,
    ) -> Self {
        let steps = steps.into_iter().map(|key| key.map(String::into_bytes)).collect();
        let keep = keep.into_iter().map(|(key, text)| (key.into_bytes(), text)).collect();
        Self(Mutex::new(Scanner::new(Rules { steps, keep, max_bytes: max_bytes.max(1), block_bytes, max_held })))
    }

    fn feed(&self, py: Python<'_>, piece: &[u8], start: usize, end: usize) -> PyResult<()> {
        let part = piece.get(start..end).ok_or_else(|| PyIndexError::new_err(end))?;
        self.run(py, |scanner| scanner.feed(part))
    }

    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        self.run(py, Scanner::finish)
    }

    #[getter]
    fn is_open(&self, py: Python<'_>) -> PyResult<bool> {
        self.run(py, |scanner| Ok(scanner.is_open()))
    }

    /// A block, a refusal or a fault; None before the next piece.
    fn take<'py>(&self, py: Python<'py>) -> PyResult<Option<PyFound<'py>>> {
        Ok(match self.run(py, Scanner::take)? {
            None => None,
            Some(Found::Block(block)) => Some((Some(ElementBlock(block)), None, None)),
            Some(Found::Refusal(Refusal { offset, reason, raw, fields, begins })) => {
                let refusal = (offset, reason, python_bytes(py, &raw)?, python_bytes(py, &fields)?, begins);
                Some((None, Some(refusal), None))
            }
            Some(Found::Fault(Fault { kind, offset, key })) => Some((None, None, Some((kind, offset, key)))),
        })
    }
}

/// Elements that follow each other.
#[pyclass(frozen)]
pub struct ElementBlock(Block);

#[pymethods]
impl ElementBlock {
    #[getter]
    fn lines<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        python_bytes(py, &self.0.lines)
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    fn element<'py>(
        &self,
        py: Python<'py>,
        number: usize,
    ) -> PyResult<(usize, Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
        let (offset, raw, fields) = self.0.element(number).ok_or_else(|| PyIndexError::new_err(number))?;
        Ok((offset, python_bytes(py, raw)?, python_bytes(py, fields)?))
    }
}
