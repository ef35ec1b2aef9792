//! A built module.

use std::ffi::CString;
use std::sync::atomic::{AtomicUsize, Ordering};

use level_zero_sys as sys;

use crate::compiler::Job;
use crate::handle::object;
use crate::opencl::Program;
use crate::spirv;

object!(Module, sys::_ze_module_handle_t, Module);

/// A built module.
pub struct Module {
    /// The build's input, which the native binary contains.
    pub(super) job: Job,
    /// The device's own code.
    pub(super) binary: Vec<u8>,
    pub(super) program: Program,
    pub(super) kernels: Vec<(CString, spirv::Kernel)>,
    /// The number of live kernels.
    pub(super) live_kernels: AtomicUsize,
}

impl Module {
    /// The loaded program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The kernel of this name, with the name as OpenCL wants it.
    pub fn kernel(&self, name: &str) -> Option<&(CString, spirv::Kernel)> {
        self.kernels.iter().find(|(_, kernel)| kernel.name == name)
    }

    /// Counts a live kernel, until [`remove_kernel`](Self::remove_kernel).
    pub fn add_kernel(&self) {
        self.live_kernels.fetch_add(1, Ordering::Relaxed);
    }

    /// Undoes [`add_kernel`](Self::add_kernel).
    pub fn remove_kernel(&self) {
        self.live_kernels.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether one of its kernels is alive.
    pub(super) fn has_kernels(&self) -> bool {
        self.live_kernels.load(Ordering::Relaxed) != 0
    }
}
