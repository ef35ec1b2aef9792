//! From bytes to a module.

use std::ffi::CString;

use super::built::Module;
use super::cache;
use super::flags::with_opencl_2;
use super::lockstep;
use crate::compiler::{Failure, Job, compile};
use crate::opencl::{Program, Runtime, Unit};
use crate::spirv;

/// A specialisation constant as a caller gives it: its SpecId, and where its value is.
pub type Constant = (u32, *const u8);

/// A SPIR-V module as a caller gives it.
pub struct Source<'a> {
    /// Its bytes.
    pub code: &'a [u8],
    /// OpenCL build options.
    pub options: String,
    /// The flags of Level Zero that these are made of.
    pub flags: String,
    /// The constants to set.
    pub constants: Vec<Constant>,
}

impl Module {
    /// Builds one SPIR-V module, or several that refer to each other.
    ///
    /// # Errors
    /// The reason, for the build log.
    ///
    /// # Safety
    /// Each constant's pointer is null or has a value of the type that the module gives the constant.
    pub unsafe fn build(sources: Vec<Source>) -> Result<Self, Failure> {
        let (mut units, mut kernels) = (Vec::new(), Vec::new());
        for source in sources {
            let parsed = spirv::Module::parse(source.code).map_err(Failure::Refused)?;
            // A constant that the module lacks (the optimiser may have removed it) is ignored.
            let specialisation = source.constants.iter().filter_map(|&(id, value)| {
                let size = *parsed.specialisation.get(&id)?;
                // SAFETY: the caller vouches for a value of the constant's type, which has this size.
                let bytes = (!value.is_null())
                    .then(|| unsafe { std::slice::from_raw_parts(value, size) })?;
                Some((id, bytes.to_vec()))
            });
            let specialisation = specialisation.collect();
            let has_opencl_2 = || Runtime::get().is_ok_and(|it| it.properties.has_opencl_c_2);
            let options = if parsed.needs_opencl_2 && has_opencl_2() {
                with_opencl_2(&source.options)
            } else {
                source.options
            };
            units.push(Unit {
                code: parsed.code,
                options,
                flags: source.flags,
                specialisation,
            });
            kernels.extend(parsed.kernels);
        }
        if let Some(reason) = lockstep::refusal(&kernels) {
            return Err(Failure::Refused(reason));
        }
        let kept = cache::Entry::of(&units);
        let found = kept.as_ref().and_then(cache::Entry::read);
        // The runtime may refuse what another process has kept.
        let found = found.and_then(|binary| Some((load(&binary).ok()?, binary)));
        let (program, binary) = match found {
            Some(found) => found,
            None => {
                let is_right_without_optimisation = !kernels.iter().any(relies_on_sub_groups);
                let binary = compile(&units, &described(&kernels), is_right_without_optimisation)?;
                let program = load(&binary)?;
                if let Some(kept) = kept {
                    kept.write(&binary);
                }
                (program, binary)
            }
        };
        Self::new(units, kernels, binary, program)
    }

    /// A module of its code, which is loaded as `program`.
    pub(super) fn new(
        job: Job,
        kernels: Vec<spirv::Kernel>,
        binary: Vec<u8>,
        program: Program,
    ) -> Result<Self, Failure> {
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
        })
    }
}

/// Whether the kernel may be wrong without optimisation, as all of ggml's with sub-groups are.
fn relies_on_sub_groups(kernel: &spirv::Kernel) -> bool {
    kernel.required_sub_group_size.is_some()
}

/// Loads the device's own code.
pub(super) fn load(binary: &[u8]) -> Result<Program, Failure> {
    let runtime = Runtime::get().map_err(Failure::Unavailable)?;
    Program::load(runtime, binary).map_err(Failure::Refused)
}

/// A module for people, by its kernels.
fn described(kernels: &[spirv::Kernel]) -> String {
    /// Names of C++ may have thousands of characters.
    const LONGEST: usize = 120;
    let Some(first) = kernels.first() else {
        return "a module without kernels".to_owned();
    };
    let name: String = first.name.chars().take(LONGEST).collect();
    let cut = if name == first.name { "" } else { "..." };
    format!("a module (kernels: {}, first: {name}{cut})", kernels.len())
}
