//! Kernels, and what a launch of one needs.

use std::ffi::{CStr, c_void};
use std::sync::Once;
use std::thread;

use opencl_sys as cl;
use opencl_sys::{cl_kernel, cl_program};
use zeusm_process::Mutex;

use super::device::{LARGEST_GROUP, info, number, sizes};
use super::owned::Owned;
use super::quiesce::{self, Call};
use super::{Error, Event, Image, Queue, Runtime, Sampler};
use crate::check::DeviceCode;
use crate::system::stack;

/// An argument's value.
#[derive(Clone, Copy)]
pub enum Value<'a> {
    /// Any address in this process, or null.
    Pointer(*const c_void),
    /// The bytes of a number, vector or structure.
    Bytes(&'a [u8]),
    /// The size of memory for each work-group.
    Local(usize),
    /// An image.
    Image(&'a Image),
    /// A sampler.
    Sampler(&'a Sampler),
}

/// The index space of a launch, in three dimensions.
#[derive(Clone, Copy, Debug)]
pub struct Range {
    /// The index of the first work-item.
    pub offset: [usize; 3],
    /// All work-items.
    pub items: [usize; 3],
    /// The work-items of one group.
    pub group: [usize; 3],
}

impl Range {
    /// The fewest dimensions that have all work-items. `get_work_dim` returns them, as with Intel's driver: a launch by Level
    /// Zero always has three.
    fn dimensions(&self) -> u32 {
        let is_single =
            |dimension: usize| (self.items[dimension], self.offset[dimension]) == (1, 0);
        match (is_single(1), is_single(2)) {
            (true, true) => 1,
            (false, true) => 2,
            (_, false) => 3,
        }
    }
}

/// Properties of a compiled kernel. Sizes are in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct KernelInfo {
    /// The most work-items in a group.
    pub max_group_size: usize,
    /// The preferred multiple of work-items in a group.
    pub preferred_multiple: usize,
    /// Local memory that it declares itself.
    pub local_memory: u64,
    /// Private memory of a work-item.
    pub private_memory: u64,
}

/// A kernel object. Its arguments are state that OpenCL does not guard, so setting them and enqueueing is one step
/// under a lock, taken within a [`Call`]: a fork waits until no thread has it.
pub struct Kernel {
    runtime: &'static Runtime,
    kernel: Mutex<Owned<cl_kernel>>,
}

impl Kernel {
    pub(super) fn new(
        runtime: &'static Runtime,
        program: cl_program,
        name: &CStr,
    ) -> Result<Self, Error> {
        let _call = Call::begin()?;
        let mut code = 0;
        // SAFETY: the program is alive, and the name ends in a null.
        let raw = unsafe { (runtime.api.clCreateKernel)(program, name.as_ptr(), &raw mut code) };
        // SAFETY: it was created just now.
        let kernel =
            unsafe { Owned::made("clCreateKernel", raw, code, runtime.api.clReleaseKernel) }?;
        Ok(Self::of(runtime, kernel))
    }

    /// A kernel object of its own, which has these values.
    ///
    /// # Errors
    /// When OpenCL refuses a value.
    pub fn with_values(&self, values: &[Value]) -> Result<Self, Error> {
        let _call = Call::begin()?;
        let (api, mut code) = (&self.runtime.api, 0);
        let kernel = self.kernel.lock();
        // SAFETY: the kernel is alive, and no other thread changes its arguments.
        let raw = unsafe { (api.clCloneKernel)(kernel.raw, &raw mut code) };
        // SAFETY: it was created just now.
        let made = unsafe { Owned::made("clCloneKernel", raw, code, api.clReleaseKernel) }?;
        drop(kernel);
        let made = Self::of(self.runtime, made);
        made.preset(values)?;
        Ok(made)
    }

    /// A new kernel object.
    fn of(runtime: &'static Runtime, kernel: Owned<cl_kernel>) -> Self {
        let system = cl::CL_KERNEL_EXEC_INFO_SVM_FINE_GRAIN_SYSTEM;
        let yes: cl::cl_bool = cl::CL_TRUE;
        // Pointers inside structures may refer to any memory. A runtime that always allows it may reject the setting,
        // so an error does not matter. SAFETY: the value is one cl_bool, read during the call.
        unsafe {
            (runtime.api.clSetKernelExecInfo)(
                kernel.raw,
                system,
                size_of_val(&yes),
                (&raw const yes).cast(),
            )
        };
        Self {
            runtime,
            kernel: Mutex::new(kernel),
        }
    }

    /// The properties of the compiled kernel; none when the process exits.
    pub fn info(&self) -> KernelInfo {
        let Ok(_call) = Call::begin() else {
            return KernelInfo::default();
        };
        let (kernel, device) = (self.kernel.lock().raw, self.runtime.device.device);
        let ask = |what| {
            // SAFETY: `info` gives a buffer of the size that was asked for.
            number(&info(|size, value, needed| unsafe {
                (self.runtime.api.clGetKernelWorkGroupInfo)(
                    kernel, device, what, size, value, needed,
                )
            }))
        };
        let size = |what| usize::try_from(ask(what)).unwrap_or(usize::MAX);
        KernelInfo {
            max_group_size: size(cl::CL_KERNEL_WORK_GROUP_SIZE).min(LARGEST_GROUP),
            preferred_multiple: size(cl::CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE),
            local_memory: ask(cl::CL_KERNEL_LOCAL_MEM_SIZE),
            private_memory: ask(cl::CL_KERNEL_PRIVATE_MEM_SIZE),
        }
    }

    /// The sub-group size and the number of sub-groups that a group of this shape gets. Each work-item is a sub-group where OpenCL
    /// reports none, or kernels cannot run: callers divide by the size.
    pub fn sub_groups(&self, group: [usize; 3]) -> (usize, usize) {
        let alone = (1, group.iter().product());
        let Ok(_call) = quiesce::expect_usable().and_then(|()| Call::begin()) else {
            return alone;
        };
        let (kernel, device) = (self.kernel.lock().raw, self.runtime.device.device);
        let ask = |what| {
            // SAFETY: the input is the three sizes; `info` gives a buffer of the size that was asked for.
            let value_bytes = info(|size, value, needed| unsafe {
                (self.runtime.api.clGetKernelSubGroupInfo)(
                    kernel,
                    device,
                    what,
                    size_of_val(&group),
                    group.as_ptr().cast(),
                    size,
                    value,
                    needed,
                )
            });
            sizes(&value_bytes).first().copied().filter(|&it| it > 0)
        };
        let size = ask(cl::CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE);
        let count = ask(cl::CL_KERNEL_SUB_GROUP_COUNT_FOR_NDRANGE);
        size.zip(count).unwrap_or(alone)
    }

    /// Sets every argument, which some queries of OpenCL require.
    ///
    /// # Errors
    /// When OpenCL refuses a value.
    pub fn preset(&self, values: &[Value]) -> Result<(), Error> {
        let _call = Call::begin()?;
        let kernel = self.kernel.lock();
        (0..)
            .zip(values)
            .try_for_each(|(index, value)| self.set(kernel.raw, index, *value))
    }

    /// The group size that the runtime suggests for so many work-items, if it suggests one and kernels can run.
    pub fn suggested_group(&self, items: [usize; 3]) -> Option<[usize; 3]> {
        quiesce::expect_usable().ok()?;
        let suggest = self.runtime.suggested_group?;
        let queue = Queue::for_queries(self.runtime)?;
        let _call = Call::begin().ok()?;
        let (kernel, offset, mut group) = (self.kernel.lock(), [0; 3], [0; 3]);
        // SAFETY: three dimensions in each array.
        let code = unsafe {
            suggest(
                queue.raw,
                kernel.raw,
                3,
                offset.as_ptr(),
                items.as_ptr(),
                group.as_mut_ptr(),
            )
        };
        (code == cl::CL_SUCCESS).then_some(group)
    }

    /// Sets every argument that has a value here, and enqueues a launch to `queue`.
    ///
    /// # Errors
    /// When OpenCL refuses an argument or the range.
    ///
    /// # Safety
    /// Every address the kernel follows stays valid until the event is complete.
    pub unsafe fn enqueue(
        &self,
        queue: &Queue,
        range: &Range,
        values: &[Value],
    ) -> Result<Event, Error> {
        quiesce::expect_usable()?;
        let _call = Call::begin()?;
        let _device_code = DeviceCode::begin();
        let kernel = self.kernel.lock();
        // SAFETY: as the caller promises; the lock is held.
        let event = unsafe { self.launch(kernel.raw, queue, range, values) }?;
        // The wait below may take as long as the kernel.
        drop(kernel);
        if quiesce::has_no_workers() {
            wait_with_stack(&event)?;
        }
        Ok(event)
    }

    /// Sets every argument of `kernel` and enqueues a launch.
    ///
    /// # Safety
    /// As [`enqueue`](Self::enqueue), and no other thread uses `kernel`.
    unsafe fn launch(
        &self,
        kernel: cl_kernel,
        queue: &Queue,
        range: &Range,
        values: &[Value],
    ) -> Result<Event, Error> {
        for (index, value) in (0..).zip(values) {
            self.set(kernel, index, *value)?;
        }
        let mut event = std::ptr::null_mut();
        // SAFETY: at most three dimensions, which each array has, and a place for the new event.
        let code = unsafe {
            (self.runtime.api.clEnqueueNDRangeKernel)(
                queue.raw,
                kernel,
                range.dimensions(),
                range.offset.as_ptr(),
                range.items.as_ptr(),
                range.group.as_ptr(),
                0,
                std::ptr::null(),
                &raw mut event,
            )
        };
        let release = self.runtime.api.clReleaseEvent;
        // SAFETY: the enqueue has made it.
        let event = unsafe { Owned::made("clEnqueueNDRangeKernel", event, code, release) }?;
        static FIRST: Once = Once::new();
        quiesce::prepare_for_exit(&FIRST);
        Ok(Event::new(self.runtime, event))
    }

    /// Sets one argument of a kernel that no other thread uses.
    fn set(&self, kernel: cl_kernel, index: u32, value: Value) -> Result<(), Error> {
        let bytes = |bytes: &[u8]| {
            // SAFETY: that many bytes are read during the call.
            let code = unsafe {
                (self.runtime.api.clSetKernelArg)(kernel, index, bytes.len(), bytes.as_ptr().cast())
            };
            Error::check("clSetKernelArg", code)
        };
        match value {
            Value::Bytes(value) => bytes(value),
            Value::Image(image) => bytes(&image.handle()),
            Value::Sampler(sampler) => bytes(&sampler.handle()),
            Value::Pointer(address) => {
                // SAFETY: the pointer itself is the value; it is not dereferenced here.
                let code = unsafe { (self.runtime.set_pointer)(kernel, index, address) };
                Error::check("clSetKernelArgMemPointerINTEL", code)
            }
            Value::Local(size) => {
                // SAFETY: local memory has a size and no value.
                let code = unsafe {
                    (self.runtime.api.clSetKernelArg)(kernel, index, size, std::ptr::null())
                };
                Error::check("clSetKernelArg", code)
            }
        }
    }
}

/// Executes a launch, on a new thread if the stack of the calling one is too small.
fn wait_with_stack(event: &Event) -> Result<(), Error> {
    if stack::holds_kernels() {
        return event.wait();
    }
    thread::scope(|scope| {
        let thread = thread::Builder::new().stack_size(stack::THREAD);
        let waited = thread.spawn_scoped(scope, || event.wait());
        let waited = waited.ok().and_then(|thread| thread.join().ok());
        waited.unwrap_or(Err(Error {
            operation: "the start of a thread that executes kernels",
            code: cl::CL_OUT_OF_RESOURCES,
        }))
    })
}
