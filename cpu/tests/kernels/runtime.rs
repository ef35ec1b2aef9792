//! The library under test and its first device, with helpers for kernels.

use std::env;
use std::ffi::{CStr, CString, c_char, c_void};
use std::mem;
use std::ptr;

use level_zero_sys as sys;
use level_zero_sys::{ZE_RESULT_SUCCESS, extensions, ze_result_t};

use crate::common;

/// Calls a function of the library; the result is its code.
macro_rules! call {
    ($runtime:expr, $name:ident($($argument:expr),* $(,)?)) => {{
        let function = $runtime.library.$name.expect(stringify!($name));
        // SAFETY: the tests pass valid pointers, or those that the library must refuse.
        unsafe { function($($argument),*) }
    }};
}
/// As [`call!`], for calls that must succeed.
macro_rules! must {
    ($runtime:expr, $name:ident($($argument:expr),* $(,)?)) => {
        assert_eq!(call!($runtime, $name($($argument),*)), level_zero_sys::ZE_RESULT_SUCCESS)
    };
}
pub(crate) use {call, must};

/// The variable by which the Makefile names an OpenCL runtime; tests are not skipped then.
const OPENCL: &str = "ZEUSM_OPENCL_LIBRARY";

pub struct Runtime {
    pub library: &'static sys::Library,
    pub driver: sys::ze_driver_handle_t,
    pub device: sys::ze_device_handle_t,
    pub context: sys::ze_context_handle_t,
}

impl Runtime {
    /// The library with a context and the first device.
    pub fn open() -> Self {
        let desc = sys::ze_context_desc_t {
            stype: sys::ZE_STRUCTURE_TYPE_CONTEXT_DESC,
            ..Default::default()
        };
        let mut runtime = Self {
            library: common::library(),
            driver: common::driver(),
            device: common::device(),
            context: ptr::null_mut(),
        };
        must!(
            runtime,
            zeContextCreate(runtime.driver, &raw const desc, &raw mut runtime.context)
        );
        runtime
    }

    /// The same library and context, with its last device.
    pub fn on_last_device(&self) -> Self {
        let [_, device] = common::devices();
        Self { device, ..*self }
    }

    /// The library, if it can build modules. Without an OpenCL runtime the test is skipped, unless the environment
    /// names one. Behind the validation layer of Debian 12 it is skipped, too, as that layer rejects the in-order lists
    /// of these tests.
    pub fn with_compiler() -> Option<Self> {
        if env::var("ZEUSM_TEST_MODE").as_deref() == Ok("validated") {
            eprintln!("skipped: the validation layer does not know in-order lists");
            return None;
        }
        let runtime = Self::open();
        match runtime.build(&super::programs::module(), &[]) {
            Ok(module) => must!(runtime, zeModuleDestroy(module)),
            Err((_, log)) if log.contains("no OpenCL runtime") && env::var_os(OPENCL).is_none() => {
                eprintln!("skipped, as modules cannot be built here: {log}");
                return None;
            }
            Err((code, log)) => panic!("{code:?}: {log}"),
        }
        Some(runtime)
    }

    /// Builds a module; the error is the code and the build log.
    pub fn build(
        &self,
        code: &[u8],
        constants: &[(u32, u32)],
    ) -> Result<sys::ze_module_handle_t, (ze_result_t, String)> {
        let (ids, values): (Vec<u32>, Vec<u32>) = constants.iter().copied().unzip();
        let mut values: Vec<*const c_void> = values
            .iter()
            .map(|value| (value as *const u32).cast())
            .collect();
        let constants = sys::ze_module_constants_t {
            numConstants: ids.len() as u32,
            pConstantIds: ids.as_ptr(),
            pConstantValues: values.as_mut_ptr().cast(),
        };
        let desc = sys::ze_module_desc_t {
            pConstants: &raw const constants,
            ..description(code)
        };
        self.build_described(&desc)
    }

    /// As [`build`](Self::build), from a descriptor.
    pub fn build_described(
        &self,
        desc: &sys::ze_module_desc_t,
    ) -> Result<sys::ze_module_handle_t, (ze_result_t, String)> {
        let (mut module, mut log) = (ptr::null_mut(), ptr::null_mut());
        let create = self.library.zeModuleCreate.unwrap();
        // SAFETY: the descriptor and the places are ours.
        let code = unsafe {
            create(
                self.context,
                self.device,
                desc,
                &raw mut module,
                &raw mut log,
            )
        };
        if log.is_null() {
            assert_ne!(code, ZE_RESULT_SUCCESS);
            return Err((code, String::new()));
        }
        let text = self.text_of_log(log);
        must!(self, zeModuleBuildLogDestroy(log));
        if code == ZE_RESULT_SUCCESS {
            Ok(module)
        } else {
            Err((code, text))
        }
    }

    fn text_of_log(&self, log: sys::ze_module_build_log_handle_t) -> String {
        let mut size = 0;
        must!(
            self,
            zeModuleBuildLogGetString(log, &raw mut size, ptr::null_mut())
        );
        let mut text = vec![0_u8; size];
        must!(
            self,
            zeModuleBuildLogGetString(log, &raw mut size, text.as_mut_ptr().cast::<c_char>())
        );
        assert_eq!(text.pop(), Some(0));
        String::from_utf8(text).unwrap()
    }

    /// A kernel, or the code of the error.
    pub fn kernel(
        &self,
        module: sys::ze_module_handle_t,
        name: &str,
    ) -> Result<sys::ze_kernel_handle_t, ze_result_t> {
        let name = CString::new(name).unwrap();
        let desc = sys::ze_kernel_desc_t {
            stype: sys::ZE_STRUCTURE_TYPE_KERNEL_DESC,
            pKernelName: name.as_ptr(),
            ..Default::default()
        };
        let mut kernel = ptr::null_mut();
        let code = call!(
            self,
            zeKernelCreate(module, &raw const desc, &raw mut kernel)
        );
        if code == ZE_RESULT_SUCCESS {
            Ok(kernel)
        } else {
            Err(code)
        }
    }

    /// Sets an argument to a value of any plain type.
    pub fn set<T>(&self, kernel: sys::ze_kernel_handle_t, index: u32, value: T) -> ze_result_t {
        let place = (&raw const value).cast();
        call!(
            self,
            zeKernelSetArgumentValue(kernel, index, size_of::<T>(), place)
        )
    }

    /// An immediate list, asynchronous.
    pub fn immediate(&self, in_order: bool) -> sys::ze_command_list_handle_t {
        self.immediate_of_group(0, in_order)
    }

    /// An immediate list of a queue group.
    pub fn immediate_of_group(
        &self,
        ordinal: u32,
        in_order: bool,
    ) -> sys::ze_command_list_handle_t {
        let flags = if in_order { common::IN_ORDER_QUEUE } else { 0 };
        let desc = sys::ze_command_queue_desc_t {
            ordinal,
            ..common::queue_desc(flags)
        };
        let mut list = ptr::null_mut();
        must!(
            self,
            zeCommandListCreateImmediate(self.context, self.device, &raw const desc, &raw mut list)
        );
        list
    }

    /// Appends a launch of `count` groups; the result is its code.
    pub fn append_launch(
        &self,
        list: sys::ze_command_list_handle_t,
        kernel: sys::ze_kernel_handle_t,
        count: u32,
        signal: sys::ze_event_handle_t,
        waits: &[sys::ze_event_handle_t],
    ) -> ze_result_t {
        let (groups, mut waits) = (groups(count), waits.to_vec());
        call!(
            self,
            zeCommandListAppendLaunchKernel(
                list,
                kernel,
                &raw const groups,
                signal,
                waits.len() as u32,
                waits.as_mut_ptr()
            )
        )
    }

    /// As [`append_launch`](Self::append_launch), which must succeed.
    pub fn launch(
        &self,
        list: sys::ze_command_list_handle_t,
        kernel: sys::ze_kernel_handle_t,
        count: u32,
        signal: sys::ze_event_handle_t,
        waits: &[sys::ze_event_handle_t],
    ) {
        let code = self.append_launch(list, kernel, count, signal, waits);
        assert_eq!(code, ZE_RESULT_SUCCESS);
    }

    /// Waits for an immediate list.
    pub fn synchronize(&self, list: sys::ze_command_list_handle_t) -> ze_result_t {
        // SAFETY: the specification gives the function of this name this type.
        let function: extensions::ze_pfnCommandListHostSynchronize_t =
            unsafe { common::newer(c"zeCommandListHostSynchronize") };
        // SAFETY: the list is one of ours.
        unsafe { function.unwrap()(list, u64::MAX) }
    }

    /// `count` events of one pool, with timestamps.
    pub fn events(&self, count: u32) -> Vec<sys::ze_event_handle_t> {
        let timed = sys::ZE_EVENT_POOL_FLAG_KERNEL_TIMESTAMP.0;
        let desc = sys::ze_event_pool_desc_t {
            stype: sys::ZE_STRUCTURE_TYPE_EVENT_POOL_DESC,
            flags: sys::ZE_EVENT_POOL_FLAG_HOST_VISIBLE.0 | timed,
            count,
            ..Default::default()
        };
        let mut pool = ptr::null_mut();
        must!(
            self,
            zeEventPoolCreate(
                self.context,
                &raw const desc,
                0,
                ptr::null_mut(),
                &raw mut pool
            )
        );
        (0..count)
            .map(|index| {
                let desc = sys::ze_event_desc_t {
                    stype: sys::ZE_STRUCTURE_TYPE_EVENT_DESC,
                    index,
                    ..Default::default()
                };
                let mut event = ptr::null_mut();
                must!(self, zeEventCreate(pool, &raw const desc, &raw mut event));
                event
            })
            .collect()
    }

    /// Shared memory for `count` integers.
    pub fn shared(&self, values: &[u32]) -> &'static mut [u32] {
        let (device, host) = (common::device_desc(), common::host_desc());
        let mut pointer = ptr::null_mut();
        must!(
            self,
            zeMemAllocShared(
                self.context,
                &raw const device,
                &raw const host,
                size_of_val(values),
                0,
                self.device,
                &raw mut pointer
            )
        );
        // SAFETY: the memory is new, large enough, and never freed by these tests.
        let memory = unsafe { std::slice::from_raw_parts_mut(pointer.cast::<u32>(), values.len()) };
        memory.copy_from_slice(values);
        memory
    }

    /// A function of an extension, which is not in the function table of the headers.
    ///
    /// # Safety
    /// `F` must be the function's pointer type.
    pub unsafe fn extension<F: Copy>(&self, name: &CStr) -> F {
        let mut address = ptr::null_mut::<c_void>();
        must!(
            self,
            zeDriverGetExtensionFunctionAddress(self.driver, name.as_ptr(), &raw mut address)
        );
        assert!(!address.is_null());
        // SAFETY: the caller guarantees the type.
        unsafe { mem::transmute_copy(&address) }
    }

    /// The description of the thread's last error.
    pub fn last_error(&self) -> String {
        type Describe =
            unsafe extern "C" fn(sys::ze_driver_handle_t, *mut *const c_char) -> ze_result_t;
        // SAFETY: the specification gives the function of this name this type.
        let function: Describe = unsafe { common::newer(c"zeDriverGetLastErrorDescription") };
        let mut text = ptr::null();
        // SAFETY: the driver is alive and the place is ours; the text ends in a null and lives until the next error.
        unsafe {
            assert_eq!(function(self.driver, &raw mut text), ZE_RESULT_SUCCESS);
            std::ffi::CStr::from_ptr(text)
                .to_string_lossy()
                .into_owned()
        }
    }
}

/// A descriptor of SPIR-V without constants.
pub fn description(code: &[u8]) -> sys::ze_module_desc_t {
    sys::ze_module_desc_t {
        stype: sys::ZE_STRUCTURE_TYPE_MODULE_DESC,
        format: sys::ZE_MODULE_FORMAT_IL_SPIRV,
        inputSize: code.len(),
        pInputModule: code.as_ptr(),
        ..Default::default()
    }
}

/// So many groups in the first dimension.
pub fn groups(count: u32) -> sys::ze_group_count_t {
    sys::ze_group_count_t {
        groupCountX: count,
        groupCountY: 1,
        groupCountZ: 1,
    }
}
