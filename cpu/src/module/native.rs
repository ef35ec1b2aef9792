//! The native binary of a module, which [`zeModuleCreate`](super::create) accepts: the device's code with the build's
//! input: SPIR-V, flags and constants.
//!
//! The bytes may come from an untrusted file, and contain machine code. A checksum detects a damaged file, and the
//! names of device and compiler detect a binary for another device; neither protects against malicious code.

use super::build::load;
use super::built::Module;
use super::sealed::{seal, unseal};
use crate::compiler::{Failure, Job};
use crate::opencl::Runtime;
use crate::spirv;

impl Module {
    /// Writes the module out.
    pub fn to_native(&self) -> postcard::Result<Vec<u8>> {
        let made_by = maker().unwrap_or_default();
        let body = postcard::to_allocvec(&(made_by, &self.job, &self.binary))?;
        Ok(seal(&body))
    }

    /// Loads a binary of [`Module::to_native`].
    ///
    /// # Errors
    /// The reason, for the build log.
    pub fn from_native(bytes: &[u8]) -> Result<Self, Failure> {
        let refused =
            |why: &str| Failure::Refused(format!("not a native module of this device: {why}"));
        let body = unseal(bytes).map_err(refused)?;
        let (made_by, job, binary): (String, Job, Vec<u8>) =
            postcard::from_bytes(body).map_err(|_| refused("it is cut short"))?;
        if Some(made_by) != maker() {
            return Err(refused(
                "it was made for another device or another version of the compiler",
            ));
        }
        let mut kernels = Vec::new();
        for unit in &job {
            let parsed = spirv::Module::parse(&unit.code).map_err(|why| refused(&why))?;
            kernels.extend(parsed.kernels);
        }
        let program = load(&binary)?;
        Self::new(job, kernels, binary, program)
    }
}

/// The device and the compiler that code is made for.
fn maker() -> Option<String> {
    let properties = &Runtime::get().ok()?.properties;
    Some(format!("{} / {}", properties.name, properties.driver))
}
