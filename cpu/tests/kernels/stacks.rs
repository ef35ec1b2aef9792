//! Kernels with large private arrays, waited for by threads with small stacks.

use std::ptr;
use std::thread;

use level_zero_sys::ZE_RESULT_SUCCESS as OK;
use spirv::{MemorySemantics, Scope, StorageClass};

use super::process::alone;
use super::programs::Program;
use super::runtime::{Runtime, call, must};

const ITEMS: usize = 64;
const KIB: u32 = 1 << 10;

/// A module with `private(x)`: increases `x[i]` by one in a private array of so many bytes. The indices are `x[i]` and `x[i + ITEMS]`, which the
/// compiler does not know to be equal, so that it cannot keep the array in registers.
fn module(bytes: u32, has_barrier: bool) -> Vec<u8> {
    let mut p = Program::new();
    let (int, long, global) = (p.int, p.long, p.global);
    let (length, one) = (
        p.b.constant_bit32(int, bytes / 4),
        p.b.constant_bit32(int, 1),
    );
    let array = p.b.type_array(int, length);
    let whole = p.b.type_pointer(None, StorageClass::Function, array);
    let element = p.b.type_pointer(None, StorageClass::Function, int);
    let zero = p.b.constant_bit32(int, 0);
    let (_, arguments) = p.kernel("private", &[global]);
    let array = p.b.variable(whole, None, StorageClass::Function, None);
    let i = p.index();
    let x = p.at(arguments[0], i);
    let value = p.load(x);
    let chain = [value];
    let place =
        p.b.in_bounds_ptr_access_chain(element, None, array, zero, chain);
    let place = place.unwrap();
    p.store(place, value);
    if has_barrier {
        barrier(&mut p);
    }
    let items = p.b.constant_bit64(long, ITEMS as u64);
    let further = p.b.i_add(long, None, i, items).unwrap();
    let further = p.at(arguments[0], further);
    let again = p.load(further);
    let other =
        p.b.in_bounds_ptr_access_chain(element, None, array, zero, [again]);
    let other = other.unwrap();
    let old = p.load(other);
    let new = p.b.i_add(int, None, old, one).unwrap();
    p.store(other, new);
    let result = p.load(place);
    p.store(x, result);
    p.end();
    // The memory of each kernel counts by itself.
    p.kernel("other", &[]);
    barrier(&mut p);
    p.end();
    p.bytes()
}

fn barrier(p: &mut Program) {
    let scope = p.b.constant_bit32(p.int, Scope::Workgroup as u32);
    let semantics = MemorySemantics::WORKGROUP_MEMORY | MemorySemantics::ACQUIRE_RELEASE;
    let semantics = p.b.constant_bit32(p.int, semantics.bits());
    p.b.control_barrier(scope, scope, semantics).unwrap();
}

/// Launches kernels with private arrays of these sizes, in groups of so many work-items, and waits for each, again and again.
fn launch_and_wait(sizes: &[(u32, u32)], has_barrier: bool) {
    let Some(runtime) = Runtime::with_compiler() else {
        return;
    };
    for &(bytes, group) in sizes {
        let module = runtime.build(&module(bytes, has_barrier), &[]).unwrap();
        let kernel = runtime.kernel(module, "private").unwrap();
        must!(runtime, zeKernelSetGroupSize(kernel, group, 1, 1));
        let step = bytes / 4 / ITEMS as u32 - 3;
        let indices: Vec<u32> = (0..ITEMS as u32).map(|i| i * step).collect();
        let before = [&indices[..], &indices].concat();
        for _ in 0..20 {
            let list = runtime.immediate(true);
            let x = runtime.shared(&before);
            assert_eq!(runtime.set(kernel, 0, x.as_ptr()), OK);
            runtime.launch(list, kernel, ITEMS as u32 / group, ptr::null_mut(), &[]);
            assert_eq!(runtime.synchronize(list), OK);
            let results: Vec<u32> = x[..ITEMS].iter().map(|it| it - 1).collect();
            assert_eq!(results, indices);
        }
    }
}

/// A thread with a stack of so many bytes.
fn with_stack<T: Send>(size: usize, call: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let thread = thread::Builder::new().stack_size(size);
        thread.spawn_scoped(scope, call).unwrap().join().unwrap()
    })
}

/// Of which the native runtime executes 16 at once, and single work-items.
const WITHOUT_BARRIER: [(u32, u32); 6] = [
    (256 * KIB, 1),
    (420 * KIB, 1),
    (7000 * KIB, 1),
    (7900 * KIB, 1),
    (8200 * KIB, 1),
    (20_000 * KIB, 1),
];

/// Stacks from that of Rust's threads to that of the main thread.
#[test]
#[ignore = "a failure crashes the process; run by the next test"]
fn threads_with_small_stacks_wait() {
    for kib in [2048, 6400, 6800, 8192] {
        with_stack(kib << 10, || launch_and_wait(&WITHOUT_BARRIER, false));
        // A group has all its arrays on the stack.
        let with_barrier = [(100 * KIB, 64), (1000 * KIB, 1), (9000 * KIB, 1)];
        with_stack(kib << 10, || launch_and_wait(&with_barrier, true));
    }
}

#[test]
fn kernels_with_large_private_arrays_do_not_overflow_the_stack_of_a_waiting_thread() {
    if Runtime::with_compiler().is_some() {
        alone("stacks::threads_with_small_stacks_wait");
    }
}

#[cfg(target_os = "linux")]
/// The native runtime has no workers in the child.
#[test]
#[ignore = "a failure crashes the child; run by the next test"]
fn a_child_of_a_fork_launches() {
    launch_and_wait(&WITHOUT_BARRIER, false);
    // SAFETY: the child uses the runtime, which supports that, and exits.
    let child = unsafe { libc::fork() };
    if child == 0 {
        with_stack(256 << 10, || launch_and_wait(&WITHOUT_BARRIER, false));
        // SAFETY: ends the child without the handlers of the tests.
        unsafe { libc::_exit(0) };
    }
    let mut status = 0;
    // SAFETY: the child is this process's.
    let ended = unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!((ended, status), (child, 0));
}

#[cfg(target_os = "linux")]
#[test]
fn kernels_do_not_overflow_the_stacks_of_a_forks_child() {
    if Runtime::with_compiler().is_some() {
        alone("stacks::a_child_of_a_fork_launches");
    }
}
