//! The Python frames of the calling thread, where the process has an interpreter that exports what this needs.
//!
//! `_Py_DumpTraceback` is what the module `faulthandler` calls in a signal handler: it allocates nothing, takes no lock
//! and does not need the interpreter's lock for the calling thread's own frames. CPython exports it up to 3.12; with
//! later versions there are native frames only.

use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};

type Dump = unsafe extern "C" fn(c_int, *mut c_void);
type ThreadState = unsafe extern "C" fn() -> *mut c_void;

/// The addresses of the two functions, 0 if there are none.
static DUMP: AtomicUsize = AtomicUsize::new(0);
static THREAD_STATE: AtomicUsize = AtomicUsize::new(0);

/// The longest text that is kept.
pub const LONGEST: usize = 6144;

/// Looks for an interpreter.
pub fn find() {
    let symbol = |name: *const c_char| {
        // SAFETY: the name is a C string.
        unsafe { libc::dlsym(libc::RTLD_DEFAULT, name) as usize }
    };
    THREAD_STATE.store(
        symbol(c"PyGILState_GetThisThreadState".as_ptr()),
        Ordering::Relaxed,
    );
    DUMP.store(symbol(c"_Py_DumpTraceback".as_ptr()), Ordering::Release);
}

/// Writes the frames into `text`, the innermost first, and returns the length. Makes system calls only, so that a signal
/// handler can call it.
pub fn dump(text: &mut [u8]) -> usize {
    let (dump, state) = (
        DUMP.load(Ordering::Acquire),
        THREAD_STATE.load(Ordering::Relaxed),
    );
    if dump == 0 || state == 0 {
        return 0;
    }
    // SAFETY: the interpreter's functions of these names have these types; the state is null for a thread that is not
    // Python's, and does not change while the thread is in this call.
    unsafe {
        let (dump, state) = (
            std::mem::transmute::<usize, Dump>(dump),
            std::mem::transmute::<usize, ThreadState>(state),
        );
        let thread = state();
        if thread.is_null() {
            return 0;
        }
        let file = libc::memfd_create(c"zeusm-check".as_ptr(), libc::MFD_CLOEXEC);
        if file < 0 {
            return 0;
        }
        dump(file, thread);
        let length = libc::pread(file, text.as_mut_ptr().cast(), text.len(), 0);
        libc::close(file);
        usize::try_from(length).unwrap_or(0)
    }
}

/// The frames in a text of [`dump`], one a line.
pub fn frames(text: &[u8]) -> Vec<String> {
    String::from_utf8_lossy(text)
        .lines()
        .map(str::trim)
        .filter(|line| line.starts_with("File "))
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn frames_are_the_lines_that_name_a_file() {
        let text = b"Stack (most recent call first):\n  File \"a.py\", line 3 in f\n  File \"b.py\", line 1 in <module>\n  ...";
        assert_eq!(
            super::frames(text),
            [
                "File \"a.py\", line 3 in f",
                "File \"b.py\", line 1 in <module>"
            ]
        );
    }
}
