//! The instruction set that Intel's OpenCL runtime compiles kernels for.
//!
//! The runtime of 2024.2, which numba-dpex needs, does not know AMD's processors of family 26 and later (Zen 5). It warns of an
//! "Unknown host CPU", and then kernels with sub-groups do not build or end the process, and others give wrong results. Its
//! variable names an instruction set instead; the runtime of 2026.2, which knows these processors, is as fast with it.

use std::ffi::CStr;

use crate::system::{environment, processor};

/// Intel's variable, which its runtime reads when the first library of the process initialises it.
const VARIABLE: &CStr = c"CL_CONFIG_CPU_TARGET_ARCH";

/// The first family of AMD's processors that the runtime of 2024.2 does not know.
const UNKNOWN_FAMILY: u32 = 26;

/// Sets the variable for an unknown processor, unless the user has. SYCL may initialise OpenCL before it uses this driver, so
/// this belongs to `zeInit`.
pub fn name_instruction_set() {
    if let Some(set) = instruction_set(processor::amd_family(), processor::vector_bytes()) {
        environment::set_default(VARIABLE, set);
    }
}

/// Intel's name of the instruction set, by the family of a processor of AMD and the size of its vectors.
fn instruction_set(amd_family: Option<u32>, vector_bytes: u32) -> Option<&'static CStr> {
    amd_family.filter(|family| *family >= UNKNOWN_FAMILY)?;
    match vector_bytes {
        64 => Some(c"skx"),
        32 => Some(c"core-avx2"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_unknown_processors_are_named() {
        assert_eq!(instruction_set(None, 64), None);
        assert_eq!(instruction_set(Some(25), 64), None);
        assert_eq!(instruction_set(Some(26), 64), Some(c"skx"));
        assert_eq!(instruction_set(Some(27), 32), Some(c"core-avx2"));
        assert_eq!(instruction_set(Some(27), 16), None);
    }
}
