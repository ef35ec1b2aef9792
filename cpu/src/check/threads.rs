//! Which threads execute device code at the moment: only these may access device memory.
//!
//! Our own threads say so. Workers of the OpenCL runtime do not, so while a kernel is in flight, every thread counts
//! as one that has never called this runtime.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::process::getpid;
use rustix::thread::gettid;

use super::settings::is_on;

static KERNELS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// How many [`DeviceCode`] this thread has.
    static EXECUTING: Cell<usize> = const { Cell::new(0) };
    /// Whether this thread is one of the program's.
    static IS_HOST: Cell<bool> = const { Cell::new(false) };
}

/// The calling thread executes device code until this is dropped.
pub struct DeviceCode {
    is_counted: bool,
    of_this_thread: PhantomData<*const ()>,
}

impl DeviceCode {
    /// Begins; with the checker off, does nothing.
    pub fn begin() -> Self {
        let is_counted = is_on();
        if is_counted {
            EXECUTING.set(EXECUTING.get() + 1);
        }
        Self {
            is_counted,
            of_this_thread: PhantomData,
        }
    }
}

impl Drop for DeviceCode {
    fn drop(&mut self) {
        if self.is_counted {
            EXECUTING.set(EXECUTING.get() - 1);
        }
    }
}

/// Notes that the calling thread is one of the program's.
pub fn note_host_thread() {
    IS_HOST.set(true);
}

/// A kernel is in flight from now on.
pub fn kernel_begins() {
    KERNELS.fetch_add(1, Ordering::AcqRel);
}

/// Whether one kernel is in flight.
pub fn is_one_kernel() -> bool {
    KERNELS.load(Ordering::Acquire) == 1
}

/// A kernel has ended; whether it was the last one in flight.
pub fn kernel_ends() -> bool {
    KERNELS.fetch_sub(1, Ordering::AcqRel) == 1
}

/// Whether the calling thread executes device code.
pub fn executes_device_code() -> bool {
    let is_host = || IS_HOST.get() || gettid() == getpid();
    EXECUTING.get() > 0 || KERNELS.load(Ordering::Acquire) > 0 && !is_host()
}

/// Forgets the kernels of the parent, in the child of a fork.
pub fn child() {
    KERNELS.store(0, Ordering::Relaxed);
}

/// The id of the calling thread, from the kernel.
pub fn thread_id() -> i32 {
    gettid().as_raw_nonzero().get()
}
