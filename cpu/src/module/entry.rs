//! The entry points that make, link and destroy modules.

use std::ffi::{CStr, c_void};
use std::sync::Arc;

use level_zero_sys as sys;

use super::build::Constant;
use super::{BuildLog, Module, flags};
use crate::answer::{Answer, ensure};
use crate::arguments::{array, chain, descriptor, input, output, structures};
use crate::compiler::Failure;
use crate::context::Context;
use crate::device;
use crate::driver::describe;
use crate::handle::{register, resolve, retire};

structures! {
    sys::ze_module_desc_t = sys::ZE_STRUCTURE_TYPE_MODULE_DESC;
    sys::ze_module_program_exp_desc_t = sys::ZE_STRUCTURE_TYPE_MODULE_PROGRAM_EXP_DESC;
}

/// `zeModuleCreate`.
///
/// # Safety
/// Pointers that are neither null nor misaligned must be valid, as the specification demands.
pub unsafe fn create(
    context: sys::ze_context_handle_t,
    device: sys::ze_device_handle_t,
    desc: *const sys::ze_module_desc_t,
    module: *mut sys::ze_module_handle_t,
    log: *mut sys::ze_module_build_log_handle_t,
) -> Answer {
    resolve::<Context>(context)?;
    device::expect(device)?;
    // SAFETY: the caller vouches for the pointers.
    let (source, module) = unsafe { (Source::read(descriptor(desc)?)?, output(module)?) };
    let built = match source.format {
        sys::ZE_MODULE_FORMAT_IL_SPIRV => {
            let options = flags::options(&source.flags);
            // SAFETY: the caller vouches for the constants.
            unsafe { Module::build(source.code, options, &source.constants) }
        }
        sys::ZE_MODULE_FORMAT_NATIVE => Module::from_native(source.code),
        _ => return Err(sys::ZE_RESULT_ERROR_INVALID_ENUMERATION),
    };
    // SAFETY: the caller vouches for the pointer.
    let hand_out = |text| unsafe { BuildLog::hand_out(text, log) };
    match built {
        Ok(built) => {
            hand_out(String::new())?;
            *module = register(Arc::new(built))?;
            Ok(())
        }
        Err(failure) => {
            describe(&failure.to_string());
            hand_out(failure.to_string())?;
            Err(match failure {
                // SYCL shows the log for this code only, and the log says what to install.
                Failure::Unavailable(_) => sys::ZE_RESULT_ERROR_MODULE_BUILD_FAILURE,
                _ if source.format == sys::ZE_MODULE_FORMAT_NATIVE => {
                    sys::ZE_RESULT_ERROR_INVALID_NATIVE_BINARY
                }
                _ => sys::ZE_RESULT_ERROR_MODULE_BUILD_FAILURE,
            })
        }
    }
}

/// What a module is to be made of.
struct Source<'a> {
    format: sys::ze_module_format_t,
    code: &'a [u8],
    flags: String,
    constants: Vec<Constant>,
}

impl<'a> Source<'a> {
    /// Reads a descriptor, or the one module of the extension `ZE_experimental_module_program`.
    ///
    /// # Safety
    /// Every pointer in it must be null or valid for the size that goes with it.
    unsafe fn read(desc: &'a sys::ze_module_desc_t) -> Answer<Self> {
        let (mut code, mut size) = (desc.pInputModule, desc.inputSize);
        let (mut text, mut constants) = (desc.pBuildFlags, desc.pConstants);
        // SAFETY: the caller vouches for the chain.
        let program = unsafe { chain(desc.pNext) }
            .find(|(stype, _)| *stype == sys::ZE_STRUCTURE_TYPE_MODULE_PROGRAM_EXP_DESC);
        if let Some((_, program)) = program {
            // SAFETY: the stype tells the structure; the caller vouches for its pointers, one entry each.
            unsafe {
                let program = input(program.cast::<sys::ze_module_program_exp_desc_t>())?;
                ensure(program.count == 1, sys::ZE_RESULT_ERROR_UNSUPPORTED_FEATURE)?;
                size = *input(program.inputSizes)?;
                code = *input(program.pInputModules)?;
                text = first(program.pBuildFlags)?.unwrap_or(std::ptr::null());
                constants = first(program.pConstants)?.unwrap_or(std::ptr::null());
            }
        }
        ensure(!code.is_null(), sys::ZE_RESULT_ERROR_INVALID_NULL_POINTER)?;
        ensure(size != 0, sys::ZE_RESULT_ERROR_INVALID_SIZE)?;
        ensure(
            isize::try_from(size).is_ok(),
            sys::ZE_RESULT_ERROR_INVALID_SIZE,
        )?;
        // SAFETY: the caller vouches for the pointers and the size.
        unsafe {
            Ok(Self {
                format: desc.format,
                code: std::slice::from_raw_parts(code, size),
                flags: if text.is_null() {
                    String::new()
                } else {
                    CStr::from_ptr(text).to_string_lossy().into_owned()
                },
                constants: read_constants(constants)?,
            })
        }
    }
}

/// The first entry of an optional array.
///
/// # Safety
/// `pointer` must be null or valid.
unsafe fn first<T: Copy>(pointer: *const T) -> Answer<Option<T>> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller vouches for the pointer.
    unsafe { input(pointer) }.map(|first| Some(*first))
}

/// The specialisation constants that a descriptor names.
///
/// # Safety
/// `pointer` must be null or valid, and so must be the arrays it names.
unsafe fn read_constants(pointer: *const sys::ze_module_constants_t) -> Answer<Vec<Constant>> {
    if pointer.is_null() {
        return Ok(Vec::new());
    }
    // SAFETY: the caller vouches for the pointers.
    unsafe {
        let constants = input(pointer)?;
        let (count, null) = (
            constants.numConstants,
            sys::ZE_RESULT_ERROR_INVALID_NULL_POINTER,
        );
        let ids = array(constants.pConstantIds, count, null)?;
        let values: &[*const c_void] = array(constants.pConstantValues.cast(), count, null)?;
        Ok(ids
            .iter()
            .copied()
            .zip(values.iter().map(|value| value.cast()))
            .collect())
    }
}

/// `zeModuleDestroy`; refused while a kernel of the module is alive.
pub fn destroy(module: sys::ze_module_handle_t) -> Answer {
    if resolve::<Module>(module)?.is_used() {
        describe("the module still has kernels; destroy those first");
        return Err(sys::ZE_RESULT_ERROR_HANDLE_OBJECT_IN_USE);
    }
    retire::<Module>(module).map(drop)
}

/// `zeModuleDynamicLink`: a module with an import that it does not define fails to build, so there is nothing to do.
///
/// # Safety
/// `modules` must be null or hold `count` handles, `log` must be null or valid.
pub unsafe fn link(
    count: u32,
    modules: *mut sys::ze_module_handle_t,
    log: *mut sys::ze_module_build_log_handle_t,
) -> Answer {
    // SAFETY: the caller vouches for the pointers.
    unsafe {
        let modules = array(
            modules.cast_const(),
            count,
            sys::ZE_RESULT_ERROR_INVALID_NULL_POINTER,
        )?;
        modules
            .iter()
            .try_for_each(|module| resolve::<Module>(*module).map(drop))?;
        BuildLog::hand_out(String::new(), log)
    }
}
