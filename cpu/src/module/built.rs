//! A built module.

use std::ffi::CString;

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
    /// The loaded program.
    pub program: Program,
    pub(super) kernels: Vec<(CString, spirv::Kernel)>,
}

impl Module {
    /// The kernel of this name, with the name as OpenCL wants it.
    pub fn kernel(&self, name: &str) -> Option<&(CString, spirv::Kernel)> {
        self.kernels.iter().find(|(_, kernel)| kernel.name == name)
    }
}
