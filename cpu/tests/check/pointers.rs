//! Kernels whose pointers are wrong.

use std::ffi::c_void;
use std::ptr;
use std::thread;
use std::time::Duration;

use crate::common::{Context, Kind};
use crate::gallery::Program;
use crate::kernels::Setup;
use crate::programs;
use crate::runtime::{call, must};

pub const PROGRAMS: &[Program] = &[
    (
        "kernel_follows_a_pointer_to_freed_memory",
        &["use-after-free"],
        kernel_follows_a_pointer_to_freed_memory,
    ),
    (
        "kernel_writes_before",
        &["out-of-bounds"],
        kernel_writes_before,
    ),
    (
        "kernel_has_memory_of_another_context",
        &["foreign-context"],
        kernel_has_memory_of_another_context,
    ),
    (
        "host_writes_without_a_wait_for_the_kernel",
        &["race"],
        host_writes_without_a_wait_for_the_kernel,
    ),
    (
        "a_module_is_never_destroyed",
        &["leak", "leak"],
        a_module_is_never_destroyed,
    ),
    ("kernel_follows_a_pointer", &[], kernel_follows_a_pointer),
];

/// A module with the kernel `follow(p)`: `**p = 7`.
fn follower() -> Vec<u8> {
    let mut p = programs::Program::new();
    let class = spirv::StorageClass::CrossWorkgroup;
    let seven = p.b.constant_bit32(p.int, 7);
    let indirect = p.b.type_pointer(None, class, p.global);
    let (_, arguments) = p.kernel("follow", &[indirect]);
    let target = p.b.load(p.global, None, arguments[0], None, []).unwrap();
    p.store(target, seven);
    p.end();
    p.bytes()
}

/// Runs `follow` on shared memory that holds `pointer`.
fn follow(setup: &Setup, pointer: *mut c_void) {
    let address = pointer as usize;
    let place = setup
        .runtime
        .shared(&[address as u32, (address >> 32) as u32]);
    setup.launch(place.as_mut_ptr().cast(), 1);
    setup.synchronize();
    setup.free(place.as_mut_ptr().cast());
}

fn kernel_follows_a_pointer_to_freed_memory() {
    let setup = Setup::of(&follower(), "follow", true);
    let memory = setup.device(4096);
    setup.free(memory);
    follow(&setup, memory);
}

fn kernel_follows_a_pointer() {
    let setup = Setup::of(&follower(), "follow", true);
    let (device, shared) = (setup.device(4096), setup.runtime.shared(&[0; 1024]));
    for _ in 0..5 {
        follow(&setup, device);
        follow(&setup, shared.as_mut_ptr().cast());
        assert_eq!(shared[0], 7);
        shared.fill(0);
    }
    setup.free(device);
    setup.free(shared.as_mut_ptr().cast());
}

fn kernel_writes_before() {
    let setup = Setup::new(true);
    let memory = setup.device(4096);
    setup.launch(memory.wrapping_byte_sub(4), 1);
    setup.synchronize();
    setup.free(memory);
}

fn kernel_has_memory_of_another_context() {
    let (setup, other) = (Setup::new(true), Context::new());
    let memory = other.alloc(Kind::Shared, 4096);
    setup.launch(memory, 8);
    setup.synchronize();
    other.free(memory);
}

fn host_writes_without_a_wait_for_the_kernel() {
    let setup = Setup::new(true);
    let memory = setup.runtime.shared(&[0; 1024]);
    setup.launch(memory.as_mut_ptr().cast(), 1024);
    // While the kernel is executed, its memory is open to the host, too. That it has ended does not order the write.
    thread::sleep(Duration::from_millis(200));
    // SAFETY: the memory is alive; the checker opens it.
    unsafe { ptr::write_volatile(memory.as_mut_ptr().wrapping_add(100), 1) };
    setup.synchronize();
    setup.free(memory.as_mut_ptr().cast());
}

fn a_module_is_never_destroyed() {
    let setup = Setup::new(true);
    must!(setup.runtime, zeCommandListDestroy(setup.list));
    must!(setup.runtime, zeContextDestroy(setup.runtime.context));
    std::mem::forget(setup);
}
