//! Callbacks of the native runtime, which do not call that runtime, and the objects that they leave to other threads.

use std::cell::Cell;
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};

use zeusm_process::{Local, Mutex};

/// Objects to be dropped by a thread that may call the native runtime.
#[derive(Default)]
struct Retired {
    objects: Mutex<Vec<Box<dyn Send>>>,
    has_some: AtomicBool,
}

/// Those of this process.
static RETIRED: Local<Retired> = Local::new();

thread_local! {
    /// Whether this thread is in a callback of the native runtime.
    static IN_CALLBACK: Cell<bool> = const { Cell::new(false) };
    /// Whether this thread is dropping retired objects.
    static IS_RELEASING: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work` as part of a callback of the native runtime, which must not be called from there.
pub fn in_callback(work: impl FnOnce()) {
    let before = IN_CALLBACK.replace(true);
    work();
    IN_CALLBACK.set(before);
}

/// Whether this thread is in a callback of the native runtime.
pub fn is_in_callback() -> bool {
    IN_CALLBACK.get()
}

/// Drops an object that may hold the last reference to a native object: later, on a thread that is not in a callback
/// and holds no lock.
pub fn retire(object: Box<dyn Send>) {
    let retired = RETIRED.get_or_default();
    retired.objects.lock().push(object);
    retired.has_some.store(true, Ordering::Relaxed);
}

/// As [`retire`], but at once outside of callbacks. The caller must hold no lock.
pub fn retire_or_drop(object: Box<dyn Send>) {
    if is_in_callback() {
        retire(object);
    }
}

/// Drops the retired objects. Nested calls leave theirs to the outermost one, since recursion could overflow the stack.
pub fn release_retired() {
    let Some(retired) = RETIRED.get() else { return };
    if !retired.has_some.load(Ordering::Relaxed) || is_in_callback() || IS_RELEASING.replace(true) {
        return;
    }
    while retired.has_some.load(Ordering::Relaxed) {
        let objects = {
            let mut objects = retired.objects.lock();
            retired.has_some.store(false, Ordering::Relaxed);
            mem::take(&mut *objects)
        };
        drop(objects);
    }
    IS_RELEASING.set(false);
}
