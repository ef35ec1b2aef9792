//! The calling thread.

use std::ops::Range;
use std::ptr;

/// The addresses of the calling thread's stack. That of the main thread may grow to its start.
pub fn own_stack() -> Option<Range<usize>> {
    let (mut first, mut size) = (ptr::null_mut(), 0);
    // SAFETY: the attributes are initialised by the first call and destroyed by the last one, and all of it is local.
    unsafe {
        let mut attributes = std::mem::zeroed::<libc::pthread_attr_t>();
        if libc::pthread_getattr_np(libc::pthread_self(), &raw mut attributes) != 0 {
            return None;
        }
        let code =
            libc::pthread_attr_getstack(&raw const attributes, &raw mut first, &raw mut size);
        libc::pthread_attr_destroy(&raw mut attributes);
        (code == 0).then(|| first.addr()..first.addr().saturating_add(size))
    }
}
