//! The OpenCL runtime of this process.

use std::ffi::c_void;
use std::path::{Path, PathBuf};
use std::sync::Once;

use opencl_sys as cl;
use opencl_sys::{cl_command_queue, cl_context, cl_int, cl_kernel};
use zeusm_process::{Lazy, Local, Mutex};

use super::api::{Api, FunctionPointer, GlobalVariablePointer};
use super::device::{Candidate, Properties};
use super::error::{Unusable, not_found, of_path};
use super::quiesce::{self, Call};
use super::{Error, find};
use crate::system::signals;

/// `clSetKernelArgMemPointerINTEL` of `cl_intel_unified_shared_memory`, which sets an argument to any pointer.
type SetPointer = unsafe extern "C" fn(cl_kernel, cl::cl_uint, *const c_void) -> cl_int;

/// `clGetKernelSuggestedLocalWorkSizeKHR` of `cl_khr_suggested_local_work_size`.
type SuggestGroup = unsafe extern "C" fn(
    cl_command_queue,
    cl_kernel,
    cl::cl_uint,
    *const usize,
    *const usize,
    *mut usize,
) -> cl_int;

/// A library, its CPU device, and a context on it. Lives as long as the process, as OpenCL libraries cannot be unloaded
/// safely.
pub struct Runtime {
    pub(super) api: Api,
    pub(super) device: Candidate,
    pub(super) context: cl_context,
    pub(super) set_pointer: SetPointer,
    pub(super) global_variable: Option<GlobalVariablePointer>,
    pub(super) function_pointer: Option<FunctionPointer>,
    pub(super) suggested_group: Option<SuggestGroup>,
    /// The capabilities of the device.
    pub properties: Properties,
}

// SAFETY: OpenCL's functions are thread-safe except clSetKernelArg, which `Kernel` guards by a lock.
unsafe impl Send for Runtime {}
// SAFETY: as above.
unsafe impl Sync for Runtime {}

impl Runtime {
    /// The runtime, opened on first use. A failure is not cached, since the SYCL runtime that it is installed with may
    /// be loaded later.
    ///
    /// # Errors
    /// When there is none, with advice on what to install.
    pub fn get() -> Result<&'static Self, String> {
        static RUNTIME: Lazy<Runtime> = Lazy::new();
        static OPENING: Local<Mutex<()>> = Local::new();
        if let Some(runtime) = RUNTIME.get() {
            return Ok(runtime);
        }
        // One thread at a time, so that only one context is created.
        let _opening = OPENING.get_or_default().lock();
        // During the exit, too: what is opened only then has not been destroyed.
        let _call = Call::begin();
        match RUNTIME.get() {
            Some(runtime) => Ok(runtime),
            // Intel's runtime sets the handlers of LLVM for 15 signals. They call none that the program had set, and at one of
            // them, such as SIGINT, LLVM sets all actions that it had found.
            None => signals::preserved(Self::find).map(|runtime| RUNTIME.get_or_make(|| runtime)),
        }
    }

    /// The first candidate that is usable.
    fn find() -> Result<Self, String> {
        let mut tried = Vec::new();
        for path in find::candidates() {
            match Api::open(&path).and_then(Self::on) {
                Ok(runtime) => return Ok(runtime),
                Err(error) => tried.push(error),
            }
        }
        Err(not_found(&tried, find::chosen().is_some()))
    }

    /// A context on the first CPU device that can run SPIR-V on this process's memory.
    fn on(api: Api) -> Result<Self, Unusable> {
        let usable = Candidate::all(&api).into_iter().find_map(|device| {
            let properties = device.properties(&api);
            let is_usable =
                properties.has("cl_intel_unified_shared_memory") && properties.spirv > (0, 0);
            // SAFETY: the extension gives the function this type.
            let setter =
                unsafe { api.extension(device.platform, c"clSetKernelArgMemPointerINTEL") }?;
            is_usable.then_some((device, properties, setter))
        });
        let Some((device, properties, set_pointer)) = usable else {
            let path = api.path().display();
            return Err(Unusable {
                why: format!("{path} offers no CPU device that takes SPIR-V and shared memory"),
                fails: false,
            });
        };
        let mut code = 0;
        // SAFETY: one device of the library, no properties, no callback, an out parameter for the status.
        let context = unsafe {
            (api.clCreateContext)(
                std::ptr::null(),
                1,
                &raw const device.device,
                None,
                std::ptr::null_mut(),
                &raw mut code,
            )
        };
        Error::check("clCreateContext", code).map_err(|error| {
            let path = api.file().unwrap_or_else(|| api.path().to_owned());
            Unusable {
                why: format!("{}: {error}{}", path.display(), of_path(&path)),
                fails: true,
            }
        })?;
        // SAFETY: the type is the extension's.
        let global_variable =
            unsafe { api.extension(device.platform, c"clGetDeviceGlobalVariablePointerINTEL") };
        // SAFETY: likewise.
        let function_pointer =
            unsafe { api.extension(device.platform, c"clGetDeviceFunctionPointerINTEL") };
        // SAFETY: likewise.
        let suggested_group =
            unsafe { api.extension(device.platform, c"clGetKernelSuggestedLocalWorkSizeKHR") };
        static CREATED: Once = Once::new();
        quiesce::prepare_for_exit(&CREATED);
        Ok(Self {
            api,
            device,
            context,
            set_pointer,
            global_variable,
            function_pointer,
            suggested_group,
            properties,
        })
    }

    /// `clGetDeviceInfo` of the device; `None` when that fails.
    pub fn device_info(&self, kind: cl::cl_device_info) -> Option<Vec<u8>> {
        self.device.query(&self.api, kind)
    }

    /// The library.
    pub fn path(&self) -> &Path {
        self.api.path()
    }

    /// The library's file.
    pub fn file(&self) -> Option<PathBuf> {
        self.api.file()
    }
}
