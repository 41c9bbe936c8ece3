//! One pass from NDJSON to Parquet: what `compactor` runs inside its tasks where this module is installed.

use pyo3::prelude::*;

mod scan;
mod strings;

#[pymodule]
fn compactor_native(_module: &Bound<'_, PyModule>) -> PyResult<()> {
    Ok(())
}
