//! One pass from NDJSON to Parquet: what `compactor` runs inside its tasks where this module is installed.

use pyo3::prelude::*;

mod scan;
mod strings;
mod values;
mod values_py;

#[pymodule]
fn compactor_native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(values_py::typed_value, module)?)?;
    Ok(())
}
