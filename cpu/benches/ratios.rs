//! Copies and fills through the API beside the C library's `memcpy` and `memset` on the same memory, in one run.
//!
//! Prints gigabytes per second and the ratio; a ratio of 0.9 or more from 64 MiB on is what the runtime promises.

#![allow(clippy::unwrap_used)]

use std::ffi::c_void;
use std::hint::black_box;
use std::ptr;
use std::time::{Duration, Instant};

use level_zero_sys as sys;

const MIB: usize = 1 << 20;
const ROUNDS: u32 = 12;

struct Runtime {
    library: &'static sys::Library,
    context: sys::ze_context_handle_t,
    device: sys::ze_device_handle_t,
    list: sys::ze_command_list_handle_t,
}

fn check(result: sys::ze_result_t) {
    assert_eq!(result, sys::ZE_RESULT_SUCCESS, "{:?}", result.name());
}

impl Runtime {
    fn open() -> Self {
        // Cargo leaves the shared library beside the benchmark's executable.
        let exe = std::env::current_exe().unwrap();
        let library = exe.with_file_name("libzeusm_cpu.so");
        // SAFETY: it is a Level Zero library.
        let library = unsafe { sys::load_from(library) }.unwrap();
        let mut runtime = Self {
            library,
            context: ptr::null_mut(),
            device: ptr::null_mut(),
            list: ptr::null_mut(),
        };
        let mut driver = ptr::null_mut();
        let mut one = 1;
        let context = sys::ze_context_desc_t {
            stype: sys::ZE_STRUCTURE_TYPE_CONTEXT_DESC,
            ..Default::default()
        };
        let queue = sys::ze_command_queue_desc_t {
            stype: sys::ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC,
            mode: sys::ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS,
            flags: 1 << 1,
            ..Default::default()
        };
        // SAFETY: every pointer is to a live local of the right type.
        unsafe {
            check(library.zeInit.unwrap()(0));
            check(library.zeDriverGet.unwrap()(&raw mut one, &raw mut driver));
            check(library.zeDeviceGet.unwrap()(
                driver,
                &raw mut one,
                &raw mut runtime.device,
            ));
            check(library.zeContextCreate.unwrap()(
                driver,
                &raw const context,
                &raw mut runtime.context,
            ));
            check(library.zeCommandListCreateImmediate.unwrap()(
                runtime.context,
                runtime.device,
                &raw const queue,
                &raw mut runtime.list,
            ));
        }
        runtime
    }

    fn allocate(&self, size: usize) -> *mut c_void {
        let desc = sys::ze_device_mem_alloc_desc_t {
            stype: sys::ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC,
            ..Default::default()
        };
        let mut pointer = ptr::null_mut();
        // SAFETY: every pointer is to a live local of the right type.
        check(unsafe {
            self.library.zeMemAllocDevice.unwrap()(
                self.context,
                &raw const desc,
                size,
                0,
                self.device,
                &raw mut pointer,
            )
        });
        pointer
    }

    fn finish(&self) {
        let functions = self.library;
        let synchronize = functions.zeCommandListHostSynchronize.unwrap();
        // SAFETY: the list is alive.
        check(unsafe { synchronize(self.list, u64::MAX) });
    }

    fn copy(&self, to: *mut c_void, from: *const c_void, size: usize) {
        // SAFETY: both are allocations of this size.
        check(unsafe {
            self.library.zeCommandListAppendMemoryCopy.unwrap()(
                self.list,
                to,
                from,
                size,
                ptr::null_mut(),
                0,
                ptr::null_mut(),
            )
        });
        self.finish();
    }

    fn fill(&self, to: *mut c_void, pattern: &[u8], size: usize) {
        // SAFETY: an allocation of this size, and a pattern of its length.
        check(unsafe {
            self.library.zeCommandListAppendMemoryFill.unwrap()(
                self.list,
                to,
                pattern.as_ptr().cast(),
                pattern.len(),
                size,
                ptr::null_mut(),
                0,
                ptr::null_mut(),
            )
        });
        self.finish();
    }
}

/// The best time of each, taken in turns so that both see the same machine.
fn best(mut ours: impl FnMut(), mut theirs: impl FnMut()) -> (Duration, Duration) {
    let time = |work: &mut dyn FnMut()| {
        let start = Instant::now();
        work();
        start.elapsed()
    };
    (0..ROUNDS).fold(
        (Duration::MAX, Duration::MAX),
        |(ours_best, theirs_best), _| {
            (
                ours_best.min(time(&mut ours)),
                theirs_best.min(time(&mut theirs)),
            )
        },
    )
}

fn report(name: &str, size: usize, (ours, theirs): (Duration, Duration)) {
    let speed = |time: Duration| size as f64 / time.as_secs_f64() / 1e9;
    println!(
        "{name:<10} {:>9} KiB  {:>8.2} GB/s  C library {:>8.2} GB/s  ratio {:>5.2}  ({:.1} us)",
        size >> 10,
        speed(ours),
        speed(theirs),
        theirs.as_secs_f64() / ours.as_secs_f64(),
        ours.as_secs_f64() * 1e6,
    );
}

fn main() {
    let runtime = Runtime::open();
    for size in [
        64,
        4096,
        64 << 10,
        256 << 10,
        512 << 10,
        MIB,
        2 * MIB,
        4 * MIB,
        8 * MIB,
        16 * MIB,
        64 * MIB,
        256 * MIB,
        512 * MIB,
    ] {
        let (to, from) = (runtime.allocate(size), runtime.allocate(size));
        runtime.fill(to, &[1], size);
        runtime.fill(from, &[2], size);
        // SAFETY: two allocations of this size.
        let memcpy = || unsafe {
            ptr::copy_nonoverlapping(black_box(from).cast::<u8>(), to.cast(), size);
        };
        // SAFETY: an allocation of this size.
        let memset = || unsafe { ptr::write_bytes(black_box(to).cast::<u8>(), 7, size) };
        report("copy", size, best(|| runtime.copy(to, from, size), memcpy));
        report("fill", size, best(|| runtime.fill(to, &[7], size), memset));
        report(
            "fill four",
            size,
            best(|| runtime.fill(to, &[1, 2, 3, 4], size), memset),
        );
        for pointer in [to, from] {
            // SAFETY: nothing uses it any more.
            check(unsafe { runtime.library.zeMemFree.unwrap()(runtime.context, pointer) });
        }
    }
}
