//! The client of HTTP for Python. The Python package documents the calls.

use std::io;
use std::time::Duration;

use pyo3::exceptions::{PyConnectionError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::http::{Client, Request, Timeouts};

/// A response's status, its headers in lower case, and its body.
type PyAnswer<'py> = (u16, Vec<(String, String)>, Bound<'py, PyBytes>);

#[pyclass(name = "HttpClient", frozen)]
pub struct PyHttpClient(Client);

#[pymethods]
impl PyHttpClient {
    #[new]
    fn new(ca_file: &str, connect_seconds: f64, transfer_seconds: f64, max_idle: usize) -> PyResult<Self> {
        let seconds =
            |each| Duration::try_from_secs_f64(each).map_err(|error| PyValueError::new_err(error.to_string()));
        let timeouts = Timeouts { connect: seconds(connect_seconds)?, transfer: seconds(transfer_seconds)? };
        let client = Client::new(ca_file, timeouts, max_idle, is_interrupted).map_err(failure)?;
        Ok(Self(client))
    }

    #[expect(clippy::needless_pass_by_value, reason = "as Python passes them")]
    fn send<'py>(
        &self,
        py: Python<'py>,
        method: &str,
        url: &str,
        headers: Vec<(String, String)>,
        body: &[u8],
        max_bytes: usize,
    ) -> PyResult<PyAnswer<'py>> {
        let request = Request { method, url, headers: &headers, body, max_bytes };
        let answer = py.detach(|| self.0.send(&request)).map_err(|error| interruption(py, error))?;
        let (status, length) = (answer.status(), answer.length());
        let mut headers = Vec::new();
        let content = PyBytes::new_with(py, length, |room| {
            headers = py.detach(|| answer.read_body(room)).map_err(|error| interruption(py, error))?;
            Ok(())
        })?;
        Ok((status, headers, content))
    }
}

/// Whether a signal's handler raised, as for Ctrl-C. Its exception is then this thread's error.
fn is_interrupted() -> bool {
    Python::attach(|py| py.check_signals().map_err(|raised| raised.restore(py)).is_err())
}

/// What a signal's handler raised, else what went wrong.
fn interruption(py: Python<'_>, error: io::Error) -> PyErr {
    PyErr::take(py).unwrap_or_else(|| failure(error))
}

#[expect(clippy::needless_pass_by_value, reason = "an argument of `map_err`")]
fn failure(error: io::Error) -> PyErr {
    match error.kind() {
        io::ErrorKind::InvalidInput => PyValueError::new_err(error.to_string()),
        _ => PyConnectionError::new_err(error.to_string()),
    }
}
