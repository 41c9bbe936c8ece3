//! One pass from NDJSON to Parquet: runs inside the tasks of `compactor` if this module is installed.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyMemoryError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

mod background;
mod bin_writer;
mod checked_pages;
mod chunk;
mod columns;
pub mod elements;
mod elements_py;
mod entries;
mod grok;
mod grok_py;
mod http;
mod http_py;
mod keys;
mod memory;
mod nested;
mod open_columns;
mod output;
mod parts;
mod row_sums;
mod row_sums_py;
mod rows;
mod scan;
mod sparse;
pub mod special;
mod statistics;
mod strings;
mod text;
mod types_py;
pub mod values;
mod values_py;

pub use bin_writer::{BinWriter, ColumnName, OutputColumn};
pub use columns::ColumnKind;
pub use keys::KeyRules;
pub use text::snappy;
pub use values::{Epoch, Kind};

use bin_writer::Failure;
use memory::NoRoom;
use scan::NoRecord;
use types_py::PyType;

create_exception!(compactor_native, KernelError, PyException, "The module has a fault, or rows could not be encoded.");

/// Incremented with every change to the interface with Python, so that each side refuses an older counterpart.
const INTERFACE: u32 = 18;

/// A column as Python describes it: its name and id, its role (`key`, `rescued`, `source`, `text`, `timestamp` or
/// `date`), and the role's parameters: the key, the text, the time or the day; for a key also its type.
#[derive(FromPyObject)]
struct ColumnPlan {
    name: String,
    field_id: i32,
    role: String,
    text: String,
    micros: i64,
    days: i32,
    column_type: Option<PyType>,
}

impl ColumnPlan {
    fn output_column(self) -> PyResult<(ColumnName, OutputColumn)> {
        let column = match self.role.as_str() {
            "key" => {
                let kind = self.column_type.map_or(Ok(ColumnKind::Text), |found| found.kind(self.field_id))?;
                OutputColumn::Key { key: self.text.into_bytes(), kind }
            }
            "rescued" => OutputColumn::Rescued,
            "source" => OutputColumn::Source,
            "text" => OutputColumn::Text(self.text),
            "timestamp" => OutputColumn::Timestamp(self.micros),
            "date" => OutputColumn::Date(self.days),
            other => {
                return Err(PyValueError::new_err(format!("column {}: unknown role {other:?}", self.name)));
            }
        };
        Ok((ColumnName { name: self.name, field_id: self.field_id }, column))
    }
}

/// Python's rules for keys without a column.
#[derive(FromPyObject)]
struct KeyPlan {
    rescues_unknown: bool,
    refused: Vec<String>,
    max_keys: usize,
    max_key_characters: usize,
}

impl KeyPlan {
    fn rules(self) -> KeyRules {
        KeyRules {
            rescues_unknown: self.rescues_unknown,
            refused: self.refused.into_iter().map(String::into_bytes).collect(),
            max_keys: self.max_keys,
            max_key_characters: self.max_key_characters,
        }
    }
}

/// Writes the rows of files to Parquet. The Python package documents the calls.
#[pyclass(name = "BinWriter", frozen)]
struct PyBinWriter(Mutex<State>);

struct State {
    writer: BinWriter,
    is_broken: bool,
}

impl PyBinWriter {
    /// Does some work without Python's lock; a panic becomes an error, and ends this writer.
    fn run<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut BinWriter) -> Result<T, Failure> + Send,
    ) -> PyResult<T> {
        let done = py.detach(|| {
            let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if state.is_broken {
                return Err(Ok(Failure::Broken));
            }
            let done = catch_unwind(AssertUnwindSafe(|| work(&mut state.writer)));
            state.is_broken = !matches!(done, Ok(Ok(_)));
            done.map_err(|panic| Err(panic_text(&*panic))).and_then(|done| done.map_err(Ok))
        });
        done.map_err(|failure| match failure {
            Ok(Failure::Memory(NoRoom { bytes })) => PyMemoryError::new_err(format!("{bytes} bytes")),
            Ok(failure) => KernelError::new_err(failure.to_string()),
            Err(panic) => KernelError::new_err(panic),
        })
    }
}

#[pymethods]
impl PyBinWriter {
    #[new]
    fn new(
        columns: Vec<ColumnPlan>,
        compression: &str,
        rules: KeyPlan,
        held_bytes: usize,
        pages_bytes: usize,
        threads: usize,
    ) -> PyResult<Self> {
        let columns = columns.into_iter().map(ColumnPlan::output_column).collect::<PyResult<_>>()?;
        let writer = BinWriter::new(columns, compression, &rules.rules(), (held_bytes, pages_bytes), threads)
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(Self(Mutex::new(State { writer, is_broken: false })))
    }

    fn begin_file(&self, py: Python<'_>, source: String) -> PyResult<()> {
        self.run(py, |writer| {
            writer.begin_file(source);
            Ok(())
        })
    }

    #[pyo3(signature = (data, start = 0, end = None))]
    fn read<'py>(
        &self,
        py: Python<'py>,
        data: &[u8],
        start: usize,
        end: Option<usize>,
    ) -> PyResult<(usize, usize, Vec<PyRefusedLine<'py>>)> {
        let end = end.unwrap_or(data.len());
        let Some(block) = data.get(start..end) else {
            return Err(PyValueError::new_err(format!("bytes {start} to {end} of {}", data.len())));
        };
        let judged = self.run(py, |writer| writer.read(block))?;
        let refused = judged.refused.into_iter();
        let refused = refused.map(|(number, from, to, fault)| (number, start + from, start + to, reason(py, fault)));
        Ok((judged.lines, judged.blank_lines, refused.collect()))
    }

    fn withdraw_file(&self, py: Python<'_>) -> PyResult<bool> {
        self.run(py, |writer| Ok(writer.withdraw_file()))
    }

    fn end_file(&self, py: Python<'_>) -> PyResult<(Vec<String>, bool)> {
        let (new_keys, has_further) = self.run(py, BinWriter::end_file)?;
        // The scan has verified that they are text.
        Ok((new_keys.iter().map(|key| String::from_utf8_lossy(key).into_owned()).collect(), has_further))
    }

    fn take<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.is_broken {
            return Err(KernelError::new_err(Failure::Broken.to_string()));
        }
        python_bytes(py, &state.writer.take().unwrap_or_default())
    }

    fn finish_output(&self, py: Python<'_>) -> PyResult<()> {
        self.run(py, BinWriter::finish)
    }

    #[getter]
    fn output_bytes(&self, py: Python<'_>) -> PyResult<usize> {
        self.run(py, |writer| Ok(writer.output_bytes()))
    }

    #[getter]
    fn lacks_columns(&self, py: Python<'_>) -> PyResult<bool> {
        self.run(py, |writer| Ok(writer.lacks_columns()))
    }

    #[getter]
    fn rescued_values(&self, py: Python<'_>) -> PyResult<u64> {
        self.run(py, |writer| Ok(writer.rescued_values()))
    }
}

/// A copy; a `MemoryError` rather than a panic if there is not enough memory.
fn python_bytes<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, bytes.len(), |copy| {
        copy.copy_from_slice(bytes);
        Ok(())
    })
}

/// A refused line with its reason, as inspection names it; empty if only inspection can decide.
type PyRefusedLine<'py> = (usize, usize, usize, Bound<'py, PyString>);

fn reason(py: Python<'_>, fault: NoRecord) -> Bound<'_, PyString> {
    let reason = match fault {
        NoRecord::NoText => intern!(py, "invalid_utf8"),
        NoRecord::Malformed => intern!(py, "invalid_json"),
        NoRecord::OtherValue => intern!(py, "not_an_object"),
        // The parser that judges lines elsewhere does not always detect the depth first.
        NoRecord::TooDeep | NoRecord::NoRoom => intern!(py, ""),
    };
    reason.clone()
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("a panic without a word").to_owned()
}

#[pymodule]
fn compactor_native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("KernelError", module.py().get_type::<KernelError>())?;
    module.add("INTERFACE", INTERFACE)?;
    module.add_function(wrap_pyfunction!(values_py::typed_value, module)?)?;
    module.add_function(wrap_pyfunction!(grok_py::expanded, module)?)?;
    module.add_class::<grok_py::LineDecoder>()?;
    module.add_class::<elements_py::ElementScanner>()?;
    module.add_class::<http_py::PyHttpClient>()?;
    module.add_class::<row_sums_py::PyRowSums>()?;
    module.add_class::<PyBinWriter>()
}
