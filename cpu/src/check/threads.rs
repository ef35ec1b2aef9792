//! Which threads execute device code at the moment: only these may access device memory.
//!
//! Our own threads say so. Workers of the OpenCL runtime do not, so while a kernel is in flight, every thread counts
//! as one that has never called this runtime. A table of thread ids serves in place of thread-local variables, as the
//! first access to such a variable may allocate memory, which a signal handler must not.

use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

use rustix::process::getpid;
use rustix::thread::gettid;

use super::settings::is_on;

/// As many threads can execute device code at once; it is far more than there are.
const MOST_EXECUTING: usize = 256;
/// As many threads of the program are known.
const MOST_HOSTS: usize = 4096;

static EXECUTING: [AtomicI32; MOST_EXECUTING] = [const { AtomicI32::new(0) }; MOST_EXECUTING];
static HOSTS: [AtomicI32; MOST_HOSTS] = [const { AtomicI32::new(0) }; MOST_HOSTS];
static KERNELS: AtomicUsize = AtomicUsize::new(0);

/// The calling thread executes device code until this is dropped.
pub struct DeviceCode(Option<usize>);

impl DeviceCode {
    /// Begins; with the checker off, does nothing.
    pub fn begin() -> Self {
        if !is_on() {
            return Self(None);
        }
        let id = thread_id();
        Self(EXECUTING.iter().position(|place| {
            place.load(Ordering::Relaxed) == 0
                && place
                    .compare_exchange(0, id, Ordering::AcqRel, Ordering::Relaxed)
                    .is_ok()
        }))
    }
}

impl Drop for DeviceCode {
    fn drop(&mut self) {
        if let Some(place) = self.0 {
            EXECUTING[place].store(0, Ordering::Release);
        }
    }
}

/// Notes that the calling thread is one of the program's.
pub fn note_host_thread() {
    let id = thread_id();
    for step in 0..MOST_HOSTS {
        let place = &HOSTS[(id as usize + step) % MOST_HOSTS];
        let found = place.load(Ordering::Relaxed);
        let taken = found == 0
            && place
                .compare_exchange(0, id, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok();
        if taken || found == id {
            return;
        }
    }
}

fn is_host_thread(id: i32) -> bool {
    if id == getpid().as_raw_nonzero().get() {
        return true;
    }
    let places = (0..MOST_HOSTS).map(|step| &HOSTS[(id as usize + step) % MOST_HOSTS]);
    places
        .map(|place| place.load(Ordering::Relaxed))
        .take_while(|found| *found != 0)
        .any(|found| found == id)
}

/// A kernel is in flight from now on.
pub fn kernel_begins() {
    KERNELS.fetch_add(1, Ordering::AcqRel);
}

/// A kernel has ended; whether it was the last one in flight.
pub fn kernel_ends() -> bool {
    KERNELS.fetch_sub(1, Ordering::AcqRel) == 1
}

/// Whether the calling thread executes device code. A signal handler may call it.
pub fn executes_device_code() -> bool {
    let id = thread_id();
    let says_so = EXECUTING
        .iter()
        .any(|place| place.load(Ordering::Relaxed) == id);
    says_so || KERNELS.load(Ordering::Acquire) > 0 && !is_host_thread(id)
}

/// Forgets the parent's threads, in the child of a fork.
pub fn child() {
    EXECUTING
        .iter()
        .chain(&HOSTS)
        .for_each(|place| place.store(0, Ordering::Relaxed));
    KERNELS.store(0, Ordering::Relaxed);
}

/// The id of the calling thread, from the kernel.
pub fn thread_id() -> i32 {
    gettid().as_raw_nonzero().get()
}
