//! The machine as zeusm sees it, for `zeusm doctor` on Linux.

use std::path::PathBuf;

use pyo3::prelude::*;

use zeusm::runtime::{self, GpuNode};
use zeusm_process::memory;

/// The bytes that control groups allow, of the machine whose files are under `root`; None if the machine has less.
#[pyfunction(name = "_group_limit")]
pub(crate) fn group_limit(root: PathBuf) -> Option<u64> {
    memory::group_limit(&root)
}

/// The paths of the device nodes of Intel GPUs, with the number of the error for those that cannot be opened.
#[pyfunction(name = "_gpu_nodes")]
pub(crate) fn gpu_nodes(root: PathBuf) -> Vec<(PathBuf, Option<i32>)> {
    let number = |node: &GpuNode| node.opened.as_ref().err()?.raw_os_error();
    let nodes = runtime::gpu_nodes(&root).into_iter();
    nodes
        .map(|node| (node.path.clone(), number(&node)))
        .collect()
}
