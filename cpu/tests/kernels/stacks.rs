//! Kernels with large private arrays, waited for by threads with small stacks.

use std::ptr;
use std::thread;

use level_zero_sys::ZE_RESULT_SUCCESS as OK;
use spirv::StorageClass;

use super::process::alone;
use super::programs::Program;
use super::runtime::Runtime;

/// The 32-bit elements of the private array of each work-item.
const ELEMENTS: u32 = 1 << 16;
const ITEMS: usize = 64;

/// A module with `private(x)`: increases `x[i]` by one in a private array. The indices are `x[i]` and `x[i + ITEMS]`, which the
/// compiler does not know to be equal, so that it cannot keep the array in registers.
fn module() -> Vec<u8> {
    let mut p = Program::new();
    let (int, long, global) = (p.int, p.long, p.global);
    let (length, one) = (
        p.b.constant_bit32(int, ELEMENTS),
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
    p.bytes()
}

/// Launches the kernel and waits for it, again and again.
fn launch_and_wait() {
    let Some(runtime) = Runtime::with_compiler() else {
        return;
    };
    let module = runtime.build(&module(), &[]).unwrap();
    let kernel = runtime.kernel(module, "private").unwrap();
    let indices: Vec<u32> = (0..ITEMS as u32).map(|i| i * 1021).collect();
    let before = [&indices[..], &indices].concat();
    for _ in 0..50 {
        let list = runtime.immediate(true);
        let x = runtime.shared(&before);
        assert_eq!(runtime.set(kernel, 0, x.as_ptr()), OK);
        runtime.launch(list, kernel, ITEMS as u32, ptr::null_mut(), &[]);
        assert_eq!(runtime.synchronize(list), OK);
        let results: Vec<u32> = x[..ITEMS].iter().map(|it| it - 1).collect();
        assert_eq!(results, indices);
    }
}

/// The stack is that of Rust's threads.
#[test]
#[ignore = "a failure crashes the process; run by the next test"]
fn a_thread_with_a_stack_of_2_mib_waits() {
    let small = thread::Builder::new().stack_size(2 << 20);
    small.spawn(launch_and_wait).unwrap().join().unwrap();
}

#[test]
fn kernels_with_large_private_arrays_do_not_overflow_the_stack_of_a_waiting_thread() {
    if Runtime::with_compiler().is_some() {
        alone("stacks::a_thread_with_a_stack_of_2_mib_waits");
    }
}
