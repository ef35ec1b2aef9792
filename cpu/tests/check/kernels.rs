//! Programs with kernels.

use std::ffi::c_void;
use std::hint;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

use level_zero_sys as sys;

use crate::gallery::Program;
use crate::loops::accessible_pages;
use crate::programs;
use crate::runtime::{Runtime, call, must};

pub const PROGRAMS: &[Program] = &[
    (
        "kernel_writes_behind",
        &["out-of-bounds"],
        kernel_writes_behind,
    ),
    (
        "kernel_writes_behind_device_memory",
        &["out-of-bounds"],
        kernel_writes_behind_device_memory,
    ),
    (
        "kernel_is_given_freed_memory",
        &["use-after-free", "use-after-free"],
        kernel_is_given_freed_memory,
    ),
    (
        "host_reads_before_the_kernel_ends",
        &["race"],
        host_reads_before_the_kernel_ends,
    ),
    (
        "kernel_and_copy_in_no_order",
        &["race"],
        kernel_and_copy_in_no_order,
    ),
    (
        "free_before_the_kernel_ends",
        &["free-in-use"],
        free_before_the_kernel_ends,
    ),
    (
        "host_reads_what_a_kernel_wrote",
        &["host-access"],
        host_reads_what_a_kernel_wrote,
    ),
    ("correct_kernels", &[], correct_kernels),
    (
        "a_kernel_that_is_alone_opens_its_memory",
        &[],
        a_kernel_that_is_alone_opens_its_memory,
    ),
    (
        "a_kernel_behind_another_leaves_its_memory_closed",
        &[],
        a_kernel_behind_another_leaves_its_memory_closed,
    ),
];

/// Whether kernels can run here.
pub fn can_run() -> bool {
    std::env::var_os("ZEUSM_OPENCL_LIBRARY").is_some()
}

/// A kernel that writes `x[i] = 7`, and an in-order list; destroyed at the end.
pub struct Setup {
    pub runtime: Runtime,
    module: sys::ze_module_handle_t,
    kernel: sys::ze_kernel_handle_t,
    pub list: sys::ze_command_list_handle_t,
}

impl Setup {
    pub fn new(in_order: bool) -> Self {
        Self::of(&programs::module(), "constant", in_order)
    }

    /// With another kernel.
    pub fn of(code: &[u8], kernel: &str, in_order: bool) -> Self {
        let runtime = Runtime::with_compiler().unwrap();
        let module = runtime.build(code, &[]).unwrap();
        let kernel = runtime.kernel(module, kernel).unwrap();
        must!(runtime, zeKernelSetGroupSize(kernel, 1, 1, 1));
        let list = runtime.immediate(in_order);
        Self {
            runtime,
            module,
            kernel,
            list,
        }
    }

    pub fn device(&self, size: usize) -> *mut c_void {
        let desc = super::common::device_desc();
        let mut pointer = ptr::null_mut();
        must!(
            self.runtime,
            zeMemAllocDevice(
                self.runtime.context,
                &raw const desc,
                size,
                0,
                self.runtime.device,
                &raw mut pointer
            )
        );
        pointer
    }

    pub fn launch(&self, memory: *mut c_void, count: u32) {
        let code = self.runtime.set(self.kernel, 0, memory);
        assert_eq!(code, sys::ZE_RESULT_SUCCESS);
        self.runtime
            .launch(self.list, self.kernel, count, ptr::null_mut(), &[]);
    }

    pub fn synchronize(&self) {
        assert_eq!(self.runtime.synchronize(self.list), sys::ZE_RESULT_SUCCESS);
    }

    pub fn free(&self, memory: *mut c_void) {
        must!(self.runtime, zeMemFree(self.runtime.context, memory));
    }

    fn fill(&self, memory: *mut c_void, size: usize) {
        let pattern = 0_u32;
        must!(
            self.runtime,
            zeCommandListAppendMemoryFill(
                self.list,
                memory,
                (&raw const pattern).cast(),
                4,
                size,
                ptr::null_mut(),
                0,
                ptr::null_mut()
            )
        );
    }
}

impl Drop for Setup {
    fn drop(&mut self) {
        let Self { runtime, .. } = self;
        must!(runtime, zeCommandListDestroy(self.list));
        must!(runtime, zeKernelDestroy(self.kernel));
        must!(runtime, zeModuleDestroy(self.module));
        must!(runtime, zeContextDestroy(runtime.context));
    }
}

fn kernel_writes_behind() {
    let setup = Setup::new(true);
    let memory = setup.runtime.shared(&[0; 1024]);
    setup.launch(memory.as_mut_ptr().cast(), 1025);
    setup.synchronize();
    assert_eq!(memory, [7; 1024]);
    setup.free(memory.as_mut_ptr().cast());
}

fn kernel_writes_behind_device_memory() {
    let setup = Setup::new(true);
    let memory = setup.device(4096);
    setup.launch(memory, 1100);
    setup.synchronize();
    setup.free(memory);
}

/// Both the launch and the kernel's access are findings.
fn kernel_is_given_freed_memory() {
    let setup = Setup::new(true);
    let memory = setup.device(4096);
    setup.free(memory);
    setup.launch(memory, 8);
    setup.synchronize();
}

fn host_reads_before_the_kernel_ends() {
    let setup = Setup::new(true);
    let memory = setup.runtime.shared(&[0; 1024]);
    setup.launch(memory.as_mut_ptr().cast(), 1024);
    // Also after it, as the host does not know its end.
    std::thread::sleep(std::time::Duration::from_millis(200));
    // SAFETY: the memory is alive; the checker opens it.
    unsafe { ptr::read_volatile(memory.as_ptr()) };
    setup.synchronize();
    setup.free(memory.as_mut_ptr().cast());
}

fn kernel_and_copy_in_no_order() {
    let setup = Setup::new(false);
    let memory = setup.device(4096);
    setup.launch(memory, 1024);
    setup.fill(memory, 4096);
    setup.synchronize();
    setup.free(memory);
}

fn free_before_the_kernel_ends() {
    let setup = Setup::new(true);
    let memory = setup.device(4096);
    setup.launch(memory, 1024);
    setup.free(memory);
    setup.synchronize();
}

fn host_reads_what_a_kernel_wrote() {
    let setup = Setup::new(true);
    let memory = setup.device(4096);
    setup.launch(memory, 1024);
    setup.synchronize();
    // SAFETY: the memory is alive; the checker opens it.
    assert_eq!(unsafe { ptr::read_volatile(memory.cast::<u32>()) }, 7);
    setup.free(memory);
}

fn correct_kernels() {
    let setup = Setup::new(true);
    let (device, shared) = (setup.device(4096), setup.runtime.shared(&[0; 1024]));
    for _ in 0..20 {
        setup.launch(device, 1024);
        setup.launch(shared.as_mut_ptr().cast(), 1024);
        setup.fill(device, 4096);
        setup.synchronize();
        assert_eq!(shared, [7; 1024]);
        shared.fill(0);
    }
    setup.free(device);
    setup.free(shared.as_mut_ptr().cast());
}

/// Launches the kernel `meet`, and calls `meanwhile` while it is executed. Its memory is none of Level Zero's, so that the host may
/// access it.
fn beside(setup: &Setup, meanwhile: impl FnOnce()) {
    let met = [const { AtomicU32::new(0) }; 2];
    setup.launch(met.as_ptr().cast_mut().cast(), 1);
    while met[0].load(Ordering::Acquire) == 0 {
        hint::spin_loop();
    }
    meanwhile();
    met[1].store(1, Ordering::Release);
    setup.synchronize();
}

/// How many pages of device memory are open.
fn open_pages(memory: *mut c_void) -> usize {
    accessible_pages(memory as usize..memory as usize + 4096)
}

/// The memory is an argument that the kernel does not use, so no access opens it.
fn a_kernel_that_is_alone_opens_its_memory() {
    let mut p = programs::Program::new();
    let parameters = [p.global; 2];
    programs::meet(&mut p, &parameters);
    let setup = Setup::of(&p.bytes(), "meet", true);
    let memory = setup.device(4096);
    let code = setup.runtime.set(setup.kernel, 1, memory);
    assert_eq!(code, sys::ZE_RESULT_SUCCESS);
    beside(&setup, || assert_eq!(open_pages(memory), 1));
    assert_eq!(open_pages(memory), 0);
    setup.free(memory);
}

fn a_kernel_behind_another_leaves_its_memory_closed() {
    let (setup, other) = (
        Setup::of(&programs::module(), "meet", true),
        Setup::new(true),
    );
    let memory = other.device(4096);
    beside(&setup, || {
        other.launch(memory, 1024);
        assert_eq!(open_pages(memory), 0);
    });
    other.synchronize();
    assert_eq!(open_pages(memory), 0);
    other.free(memory);
}
