//! The same launches through OpenCL alone, the runtime's library, which is what they take at least.

use std::env;
use std::ffi::{CStr, c_void};
use std::ptr;

use libloading::Library;
use opencl_sys as cl;
use opencl_sys::cl_function_types as of;

/// `clSetKernelArgMemPointerINTEL`.
type SetPointer = unsafe extern "C" fn(cl::cl_kernel, cl::cl_uint, *const c_void) -> cl::cl_int;

/// Calls a function of OpenCL by its name and its type in `opencl-sys`.
macro_rules! call {
    ($library:expr, $name:ident: $kind:ident($($argument:expr),* $(,)?)) => {{
        // SAFETY: the type is the function's, and the arguments are valid.
        unsafe { function::<of::$kind>($library, stringify!($name)).unwrap()($($argument),*) }
    }};
}

/// A function of the library.
///
/// # Safety
/// `T` is its type.
unsafe fn function<T: Copy>(library: &Library, name: &str) -> T {
    // SAFETY: the caller vouches for the type.
    *unsafe { library.get(name) }.unwrap()
}

/// Launches of the kernel `increase`, and a queue.
pub struct Launches {
    queue: cl::cl_command_queue,
    /// The kernel object of each launch, which has its arguments.
    kernels: Vec<cl::cl_kernel>,
    items: usize,
    enqueue: of::clEnqueueNDRangeKernel_t,
    release: of::clReleaseEvent_t,
    flush: of::clFlush_t,
    finish: of::clFinish_t,
    /// Whether each launch has an event, with times.
    has_events: bool,
}

impl Launches {
    /// So many of the kernel `increase` of a module, on `memory`, in groups of 16. As those of a graph, each has a kernel object of its
    /// own and an event with times, or all have one kernel object, and no events.
    pub fn new(count: u32, module: &[u8], memory: &[u32], has_events: bool) -> Self {
        let path = env::var_os("ZEUSM_OPENCL_LIBRARY").expect("the path of an OpenCL runtime");
        // SAFETY: the runtime has opened it, so that it is loaded.
        let library = Box::leak(Box::new(unsafe { Library::new(path) }.unwrap()));
        let (mut platform, mut device) = (ptr::null_mut(), ptr::null_mut());
        let (none, mut code) = (ptr::null_mut::<c_void>(), 0);
        call!(library, clGetPlatformIDs: clGetPlatformIDs_t(1, &raw mut platform, none.cast()));
        let of_cpu = cl::CL_DEVICE_TYPE_CPU;
        call!(library, clGetDeviceIDs: clGetDeviceIDs_t(platform, of_cpu, 1, &raw mut device, none.cast()));
        let context = call!(library, clCreateContext: clCreateContext_t(ptr::null(), 1, &raw const device, None, none, &raw mut code));
        let profiling = if has_events {
            cl::CL_QUEUE_PROFILING_ENABLE
        } else {
            0
        };
        let properties = [u64::from(cl::CL_QUEUE_PROPERTIES), profiling, 0];
        let queue = call!(library, clCreateCommandQueueWithProperties: clCreateCommandQueueWithProperties_t(context, device, properties.as_ptr(), &raw mut code));
        let program = call!(library, clCreateProgramWithIL: clCreateProgramWithIL_t(context, module.as_ptr().cast(), module.len(), &raw mut code));
        let built = call!(library, clBuildProgram: clBuildProgram_t(program, 1, &raw const device, ptr::null(), None, none));
        assert_eq!(built, cl::CL_SUCCESS);
        let kernel = call!(library, clCreateKernel: clCreateKernel_t(program, c"increase".as_ptr(), &raw mut code));
        assert_eq!(code, cl::CL_SUCCESS);
        let any_memory = (cl::CL_KERNEL_EXEC_INFO_SVM_FINE_GRAIN_SYSTEM, cl::CL_TRUE);
        call!(library, clSetKernelExecInfo: clSetKernelExecInfo_t(kernel, any_memory.0, 4, (&raw const any_memory.1).cast()));
        let name: &CStr = c"clSetKernelArgMemPointerINTEL";
        let set = call!(library, clGetExtensionFunctionAddressForPlatform: clGetExtensionFunctionAddressForPlatform_t(platform, name.as_ptr()));
        // SAFETY: the extension's function has this type, and the memory lives as long as the process.
        code = unsafe {
            std::mem::transmute::<*mut c_void, SetPointer>(set)(kernel, 0, memory.as_ptr().cast())
        };
        assert_eq!(code, cl::CL_SUCCESS);
        let (addend, pair) = (1_u32, [0_u32; 2]);
        for (index, (value, size)) in (1..).zip([(ptr::from_ref(&addend), 4), (pair.as_ptr(), 8)]) {
            code =
                call!(library, clSetKernelArg: clSetKernelArg_t(kernel, index, size, value.cast()));
            assert_eq!(code, cl::CL_SUCCESS);
        }
        let kernels = (0..count).map(|_| match has_events {
            true => call!(library, clCloneKernel: clCloneKernel_t(kernel, &raw mut code)),
            false => kernel,
        });
        let kernels = kernels.collect();
        // SAFETY: opencl-sys gives the functions these types.
        unsafe {
            Self {
                queue,
                kernels,
                items: memory.len(),
                enqueue: function(library, "clEnqueueNDRangeKernel"),
                release: function(library, "clReleaseEvent"),
                flush: function(library, "clFlush"),
                finish: function(library, "clFinish"),
                has_events,
            }
        }
    }

    /// Enqueues them, and waits.
    pub fn run(&self) {
        let (offset, group) = (0, 16_usize);
        for kernel in &self.kernels {
            let mut event = ptr::null_mut();
            let place = if self.has_events {
                &raw mut event
            } else {
                ptr::null_mut()
            };
            // SAFETY: the kernel has its arguments, and each size is one dimension's.
            let code = unsafe {
                self.enqueue.unwrap()(
                    self.queue,
                    *kernel,
                    1,
                    &raw const offset,
                    &raw const self.items,
                    &raw const group,
                    0,
                    ptr::null(),
                    place,
                )
            };
            assert_eq!(code, cl::CL_SUCCESS);
            if self.has_events {
                // SAFETY: the enqueue has made it.
                unsafe { self.release.unwrap()(event) };
            }
        }
        if self.has_events {
            // SAFETY: the queue is alive.
            assert_eq!(unsafe { self.flush.unwrap()(self.queue) }, cl::CL_SUCCESS);
        }
        // SAFETY: the queue is alive.
        assert_eq!(unsafe { self.finish.unwrap()(self.queue) }, cl::CL_SUCCESS);
    }
}
