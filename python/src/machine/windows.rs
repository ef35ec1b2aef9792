//! The machine as zeusm sees it, for `zeusm doctor`: Windows has neither control groups nor device nodes.

use std::path::PathBuf;

use pyo3::prelude::*;

#[pyfunction(name = "_group_limit")]
pub(crate) fn group_limit(_root: PathBuf) -> Option<u64> {
    None
}

#[pyfunction(name = "_gpu_nodes")]
pub(crate) fn gpu_nodes(_root: PathBuf) -> Vec<(PathBuf, Option<i32>)> {
    Vec::new()
}
