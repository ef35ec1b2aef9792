//! Contexts and programs: OpenCL C to native modules, which `zeModuleCreate` takes.

use std::ffi::{CStr, c_char, c_void};
use std::ptr;
use std::sync::Arc;

use opencl_sys as cl;
use opencl_sys::{cl_context, cl_device_id, cl_int, cl_program, cl_uint};
use zeusm_process::Mutex;

use super::object::{Content, Object, answer, pointer, text};
use super::platform::FrontDevice;
use crate::compiler::{self, Failure};
use crate::module::{Module, Source};
use crate::spirv;

/// A context of one device.
pub type Context = Object<cl_device_id>;

/// A program.
pub type Program = Object<Sources>;

/// The source of a program, and what became of it.
pub struct Sources {
    context: Arc<Context>,
    text: String,
    built: Mutex<Option<Built>>,
}

// SAFETY: a device's handle may be used by any thread.
unsafe impl Send for Sources {}
// SAFETY: likewise.
unsafe impl Sync for Sources {}

/// The last build.
struct Built {
    options: String,
    /// The native module, or the log.
    outcome: Result<Vec<u8>, String>,
}

/// Hands out a new object, or the reason why there is none.
///
/// # Safety
/// `code` is null or valid.
unsafe fn made(made: Result<*mut c_void, cl_int>, code: *mut cl_int) -> *mut c_void {
    // SAFETY: the caller vouches for the pointer.
    if let Some(code) = unsafe { code.as_mut() } {
        *code = made.err().unwrap_or(cl::CL_SUCCESS);
    }
    made.unwrap_or(ptr::null_mut())
}

/// `clCreateContext`, for one device. Nothing happens in it that its callback would report.
///
/// # Safety
/// Pointers are null or valid, as OpenCL demands; so for all functions of the front.
pub unsafe extern "C" fn create_context(
    _: *const isize,
    count: cl_uint,
    devices: *const cl_device_id,
    _: Option<unsafe extern "C" fn(*const c_char, *const c_void, usize, *mut c_void)>,
    _: *mut c_void,
    code: *mut cl_int,
) -> cl_context {
    // SAFETY: the caller vouches for the pointers.
    unsafe {
        let context = match count {
            1 => Ok(Context::hand_out(FrontDevice::of(*devices).table, *devices)),
            _ => Err(cl::CL_INVALID_DEVICE),
        };
        made(context, code)
    }
}

/// `clCreateProgramWithSource`.
///
/// # Safety
/// As for [`create_context`].
pub unsafe extern "C" fn create_program(
    context: cl_context,
    count: cl_uint,
    strings: *mut *const c_char,
    lengths: *const usize,
    code: *mut cl_int,
) -> cl_program {
    // SAFETY: the caller vouches for the pointers.
    unsafe {
        let program = sources(count, strings, lengths).ok_or(cl::CL_INVALID_VALUE);
        let program = program.map(|text| {
            let context = Context::shared(context);
            let table = context.table;
            let built = Mutex::new(None);
            Program::hand_out(
                table,
                Sources {
                    context,
                    text,
                    built,
                },
            )
        });
        made(program, code)
    }
}

/// The source that an array of strings has; a length of 0 means that a null ends the string.
///
/// # Safety
/// As for [`create_context`].
unsafe fn sources(
    count: cl_uint,
    strings: *mut *const c_char,
    lengths: *const usize,
) -> Option<String> {
    if count == 0 || strings.is_null() {
        return None;
    }
    let mut text = Vec::new();
    for index in 0..count as usize {
        // SAFETY: the caller vouches for the arrays.
        unsafe {
            let start = strings.add(index).read();
            if start.is_null() {
                return None;
            }
            let length = lengths.as_ref().map_or(0, |_| lengths.add(index).read());
            text.extend_from_slice(match length {
                0 => CStr::from_ptr(start).to_bytes(),
                _ => std::slice::from_raw_parts(start.cast(), length),
            });
        }
    }
    Some(String::from_utf8_lossy(&text).into_owned())
}

/// `clBuildProgram`, which has finished when it returns.
///
/// # Safety
/// As for [`create_context`].
pub unsafe extern "C" fn build(
    handle: cl_program,
    _: cl_uint,
    _: *const cl_device_id,
    options: *const c_char,
    done: Option<unsafe extern "C" fn(cl_program, *mut c_void)>,
    data: *mut c_void,
) -> cl_int {
    // SAFETY: the caller vouches for the pointers.
    let (program, options) = unsafe {
        let text = (!options.is_null()).then(|| CStr::from_ptr(options).to_string_lossy());
        (Program::of(handle), text.unwrap_or_default().into_owned())
    };
    let outcome = native(&program.value.text, &options).map_err(|failure| failure.to_string());
    let code = match outcome {
        Ok(_) => cl::CL_SUCCESS,
        Err(_) => cl::CL_BUILD_PROGRAM_FAILURE,
    };
    *program.value.built.lock() = Some(Built { options, outcome });
    if let Some(done) = done {
        // SAFETY: the caller's function takes what the caller gives it.
        unsafe { done(handle, data) };
    }
    code
}

/// The native module of a source.
fn native(text: &str, options: &str) -> Result<Vec<u8>, Failure> {
    let code = compiler::translate(text, options)?;
    let code = spirv::in_order(&code).map_err(Failure::Refused)?;
    let source = Source {
        code: &code,
        options: String::new(),
        flags: String::new(),
        constants: Vec::new(),
    };
    // SAFETY: there are no constants.
    let module = unsafe { Module::build(vec![source]) }?;
    let native = module.to_native();
    native.map_err(|error| Failure::Refused(error.to_string()))
}

impl Content for cl_device_id {
    /// `clGetContextInfo`.
    unsafe fn query(context: &Context, kind: cl_uint, _: *mut c_void) -> Option<Vec<u8>> {
        Some(match kind {
            cl::CL_CONTEXT_NUM_DEVICES => 1_u32.to_ne_bytes().to_vec(),
            cl::CL_CONTEXT_DEVICES => pointer(context.value),
            cl::CL_CONTEXT_PROPERTIES => Vec::new(),
            _ => return None,
        })
    }
}

impl Content for Sources {
    /// `clGetProgramInfo`.
    unsafe fn query(program: &Program, kind: cl_uint, place: *mut c_void) -> Option<Vec<u8>> {
        let Self {
            context,
            text: code,
            built,
        } = &program.value;
        let built = built.lock();
        let native = built.as_ref().and_then(|built| built.outcome.as_ref().ok());
        let native = native.map_or(&[][..], Vec::as_slice);
        Some(match kind {
            cl::CL_PROGRAM_NUM_DEVICES => 1_u32.to_ne_bytes().to_vec(),
            cl::CL_PROGRAM_DEVICES => pointer(context.value),
            cl::CL_PROGRAM_CONTEXT => pointer(Arc::as_ptr(context).cast_mut().cast()),
            cl::CL_PROGRAM_SOURCE => text(code),
            cl::CL_PROGRAM_BINARY_SIZES => native.len().to_ne_bytes().to_vec(),
            cl::CL_PROGRAM_BINARIES => {
                // The value is an array of the places, one for the device, which the query leaves as it is.
                // SAFETY: the caller vouches for the pointers, and for room of the size that was queried.
                let to = unsafe { place.cast::<*mut c_void>().as_ref() }.copied();
                let to = to.unwrap_or(ptr::null_mut());
                if !to.is_null() {
                    // SAFETY: likewise.
                    unsafe { ptr::copy_nonoverlapping(native.as_ptr(), to.cast(), native.len()) };
                }
                pointer(to)
            }
            _ => return None,
        })
    }
}

/// `clGetProgramBuildInfo`.
///
/// # Safety
/// As for [`create_context`].
pub unsafe extern "C" fn build_info(
    program: cl_program,
    _: cl_device_id,
    kind: cl_uint,
    size: usize,
    value: *mut c_void,
    needed: *mut usize,
) -> cl_int {
    // SAFETY: the caller vouches for the handle.
    let built = unsafe { Program::of(program) }.value.built.lock();
    let built = built.as_ref();
    let status = match built.map(|built| &built.outcome) {
        None => cl::CL_BUILD_NONE,
        Some(Ok(_)) => cl::CL_BUILD_SUCCESS,
        Some(Err(_)) => cl::CL_BUILD_ERROR,
    };
    let log = built.and_then(|built| built.outcome.as_ref().err());
    let found = match kind {
        cl::CL_PROGRAM_BUILD_STATUS => status.to_ne_bytes().to_vec(),
        cl::CL_PROGRAM_BUILD_OPTIONS => text(built.map_or("", |built| &built.options)),
        cl::CL_PROGRAM_BUILD_LOG => text(log.map_or("", String::as_str)),
        cl::CL_PROGRAM_BINARY_TYPE => match status {
            cl::CL_BUILD_SUCCESS => cl::CL_PROGRAM_BINARY_TYPE_EXECUTABLE,
            _ => cl::CL_PROGRAM_BINARY_TYPE_NONE,
        }
        .to_ne_bytes()
        .to_vec(),
        _ => return cl::CL_INVALID_VALUE,
    };
    // SAFETY: the caller vouches for the pointers.
    unsafe { answer(&found, size, value, needed) }
}
