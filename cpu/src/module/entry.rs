//! The entry points that make, link and destroy modules.

use std::ffi::{CStr, c_char, c_void};
use std::sync::Arc;

use level_zero_sys as sys;

use super::build::{Constant, Source};
use super::built::Module;
use super::flags;
use super::log::BuildLog;
use crate::abi::arguments::input_array;
use crate::abi::entry::{In, check};
use crate::abi::result::{ZeResult, described, ensure};
use crate::abi::strictness::is_strict;
use crate::compiler::Failure;
use crate::context::Context;
use crate::device::Device;
use crate::handle::{hand_out, resolve, retire};

/// `zeModuleCreate`.
pub fn create(
    _: Arc<Context>,
    _: &'static Device,
    desc: In<'_, sys::ze_module_desc_t>,
    module: &mut sys::ze_module_handle_t,
    log: Option<&mut sys::ze_module_build_log_handle_t>,
) -> ZeResult {
    let built = match desc.format {
        // SAFETY: the descriptor is valid, with all that it refers to.
        sys::ZE_MODULE_FORMAT_IL_SPIRV => unsafe { Module::build(sources(&desc)?) },
        sys::ZE_MODULE_FORMAT_NATIVE => {
            // SAFETY: as above.
            Module::from_native(unsafe { code(desc.pInputModule, desc.inputSize)? })
        }
        _ => return Err(sys::ZE_RESULT_ERROR_INVALID_ENUMERATION),
    };
    match built {
        Ok(built) => {
            BuildLog::hand_out(String::new(), log)?;
            hand_out(built, module)
        }
        Err(failure) => {
            let text = failure.to_string();
            let code = match failure {
                // SYCL retries after this code only: it keeps any other failure of a module for the life of the process.
                Failure::Interrupted => sys::ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY,
                // SYCL shows the log for this code only, and the log says what to install.
                Failure::Unavailable(_) => sys::ZE_RESULT_ERROR_MODULE_BUILD_FAILURE,
                _ if desc.format == sys::ZE_MODULE_FORMAT_NATIVE => {
                    sys::ZE_RESULT_ERROR_INVALID_NATIVE_BINARY
                }
                _ => sys::ZE_RESULT_ERROR_MODULE_BUILD_FAILURE,
            };
            let code = described(code, &text);
            BuildLog::hand_out(text, log)?;
            Err(code)
        }
    }
}

/// The sources of a module: the descriptor's one SPIR-V module, or those of `ZE_experimental_module_program`.
///
/// # Safety
/// Every pointer in the descriptor must be null or valid for the size that goes with it.
unsafe fn sources<'a>(desc: &In<'a, sys::ze_module_desc_t>) -> ZeResult<Vec<Source<'a>>> {
    let program = desc.extension::<sys::ze_module_program_exp_desc_t>();
    let Some(program) = program else {
        // SAFETY: the caller vouches for the pointers.
        let only = unsafe {
            source(
                desc.pInputModule,
                desc.inputSize,
                desc.pBuildFlags,
                desc.pConstants,
            )
        };
        return Ok(vec![only?]);
    };
    let null = sys::ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    // SAFETY: the caller vouches for the arrays, which have an entry for each module.
    unsafe {
        ensure(program.count != 0, sys::ZE_RESULT_ERROR_INVALID_SIZE)?;
        let sizes = input_array(program.inputSizes, program.count, null)?;
        let codes = input_array(program.pInputModules, program.count, null)?;
        let flags = |index| optional_entry(program.pBuildFlags, index);
        let constants = |index| optional_entry(program.pConstants, index);
        let all = codes.iter().zip(sizes).enumerate();
        all.map(|(index, (code, size))| source(*code, *size, flags(index), constants(index)))
            .collect()
    }
}

/// The pointer at `index` of an array that may be null.
///
/// # Safety
/// `array` must be null or have so many entries.
unsafe fn optional_entry<T>(array: *const *const T, index: usize) -> *const T {
    if array.is_null() {
        return std::ptr::null();
    }
    // SAFETY: the caller vouches for the entry.
    unsafe { array.add(index).read_unaligned() }
}

/// One module with its flags and constants.
///
/// # Safety
/// Every pointer must be null or valid for the size that goes with it.
unsafe fn source<'a>(
    start: *const u8,
    size: usize,
    text: *const c_char,
    constants: *const sys::ze_module_constants_t,
) -> ZeResult<Source<'a>> {
    // SAFETY: the caller vouches for the pointers.
    unsafe {
        let text: Option<&CStr> = check(text)?;
        let text = text.unwrap_or_default();
        Ok(Source {
            code: code(start, size)?,
            options: flags::options(&text.to_string_lossy()),
            flags: flags::spelled(&text.to_string_lossy()),
            constants: read_constants(constants)?,
        })
    }
}

/// The bytes of a module.
///
/// # Safety
/// `start` must be null or refer to `size` bytes.
unsafe fn code<'a>(start: *const u8, size: usize) -> ZeResult<&'a [u8]> {
    ensure(!start.is_null(), sys::ZE_RESULT_ERROR_INVALID_NULL_POINTER)?;
    ensure(
        size != 0 && isize::try_from(size).is_ok(),
        sys::ZE_RESULT_ERROR_INVALID_SIZE,
    )?;
    // SAFETY: the caller vouches for the bytes.
    Ok(unsafe { std::slice::from_raw_parts(start, size) })
}

/// The specialisation constants that a descriptor names.
///
/// # Safety
/// `pointer` must be null or valid, and so must be the arrays it names.
unsafe fn read_constants(pointer: *const sys::ze_module_constants_t) -> ZeResult<Vec<Constant>> {
    // SAFETY: the caller vouches for the pointers.
    unsafe {
        let constants: Option<&sys::ze_module_constants_t> = check(pointer)?;
        let Some(constants) = constants else {
            return Ok(Vec::new());
        };
        let (count, null) = (
            constants.numConstants,
            sys::ZE_RESULT_ERROR_INVALID_NULL_POINTER,
        );
        let ids = input_array(constants.pConstantIds, count, null)?;
        let values: &[*const c_void] = input_array(constants.pConstantValues.cast(), count, null)?;
        Ok(ids
            .iter()
            .copied()
            .zip(values.iter().map(|value| value.cast()))
            .collect())
    }
}

/// `zeModuleDestroy`; its kernels keep what they need. If the runtime is strict, it is an error while one is alive.
pub fn destroy(module: sys::ze_module_handle_t) -> ZeResult {
    // The table has one reference, this call another one, and each kernel one.
    if is_strict() && Arc::strong_count(&resolve::<Module>(module)?) > 2 {
        return Err(described(
            sys::ZE_RESULT_ERROR_HANDLE_OBJECT_IN_USE,
            "the module still has kernels; destroy those first",
        ));
    }
    retire::<Module>(module).map(drop)
}

/// `zeModuleDynamicLink`: a module with an import that it does not define fails to build, so there is nothing to do.
pub fn link(_: Vec<Arc<Module>>, log: Option<&mut sys::ze_module_build_log_handle_t>) -> ZeResult {
    BuildLog::hand_out(String::new(), log)
}
