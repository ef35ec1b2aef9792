//! From bytes to a module.

use std::ffi::CString;
use std::sync::atomic::AtomicUsize;

use super::Module;
use crate::compiler::{Failure, Job, compile};
use crate::opencl::{Program, Runtime};
use crate::spirv;

/// A specialisation constant as a caller gives it: its SpecId, and where its value is.
pub type Constant = (u32, *const u8);

impl Module {
    /// Builds SPIR-V with OpenCL build options.
    ///
    /// # Errors
    /// The reason in words, for the build log.
    ///
    /// # Safety
    /// Each constant's pointer is null or has a value of the type that the module gives the constant.
    pub unsafe fn build(
        code: &[u8],
        options: String,
        constants: &[Constant],
    ) -> Result<Self, Failure> {
        let parsed =
            spirv::Module::parse(code).map_err(|error| Failure::Refused(error.to_string()))?;
        // A constant that the module lacks (the optimiser may have removed it) has nothing to change.
        let specialisation = constants.iter().filter_map(|&(id, value)| {
            let size = *parsed.specialisation.get(&id)?;
            // SAFETY: the caller vouches for a value of the constant's type, which has this size.
            let bytes =
                (!value.is_null()).then(|| unsafe { std::slice::from_raw_parts(value, size) })?;
            Some((id, bytes.to_vec()))
        });
        let specialisation = specialisation.collect();
        let job = Job {
            code: parsed.code,
            options,
            specialisation,
        };
        let binary = compile(&job)?;
        Self::load(job, parsed.kernels, binary)
    }

    /// A module from the device's own code.
    pub(super) fn load(
        job: Job,
        kernels: Vec<spirv::Kernel>,
        binary: Vec<u8>,
    ) -> Result<Self, Failure> {
        let runtime = Runtime::get().map_err(|error| Failure::Unavailable(error.to_string()))?;
        let program =
            Program::load(runtime, &binary).map_err(|error| Failure::Refused(error.to_string()))?;
        let named = kernels.into_iter().map(|kernel| {
            let name = CString::new(kernel.name.as_str());
            name.map(|name| (name, kernel))
                .map_err(|error| Failure::Refused(error.to_string()))
        });
        Ok(Self {
            job,
            binary,
            program,
            kernels: named.collect::<Result<_, _>>()?,
            users: AtomicUsize::new(0),
        })
    }
}
