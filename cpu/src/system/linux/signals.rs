//! The actions of the process for signals.

use std::mem::MaybeUninit;
use std::ptr;

use libc::{c_int, sigaction};

/// The action for a signal; `None` for those of the C library.
pub fn action(signal: c_int) -> Option<sigaction> {
    let mut action = MaybeUninit::zeroed();
    // SAFETY: the call writes the action; zeros are a valid one.
    unsafe {
        (sigaction(signal, ptr::null(), action.as_mut_ptr()) == 0).then(|| action.assume_init())
    }
}

/// What an instruction raises in its thread, and what samples every thread.
const OF_THREADS: [c_int; 8] = [
    libc::SIGABRT,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGILL,
    libc::SIGPROF,
    libc::SIGSEGV,
    libc::SIGSYS,
    libc::SIGTRAP,
];

/// Leaves the process's signals, such as `SIGINT`, to the application's threads: the caller, a thread of the runtime, gets none.
pub fn leave_to_application() {
    let mut blocked = MaybeUninit::uninit();
    // SAFETY: the first call initialises the set that the others change and read.
    unsafe {
        libc::sigemptyset(blocked.as_mut_ptr());
        for signal in (1..32).filter(|signal| !OF_THREADS.contains(signal)) {
            libc::sigaddset(blocked.as_mut_ptr(), signal);
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, blocked.as_ptr(), ptr::null_mut());
    }
}

/// Calls `load`, which may load and initialise a library, and undoes what that changes in the process's actions for signals.
pub fn preserved<T>(load: impl FnOnce() -> T) -> T {
    let all = 1..=libc::SIGRTMAX();
    let before: Vec<_> = all.filter_map(|it| Some((it, action(it)?))).collect();
    let result = load();
    for (signal, before) in &before {
        if action(*signal).is_some_and(|now| now.sa_sigaction != before.sa_sigaction) {
            // SAFETY: the action was in effect before, so its handler can be called.
            unsafe { sigaction(*signal, before, ptr::null_mut()) };
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    extern "C" fn ignore(_: c_int) {}

    fn handler(signal: c_int) -> usize {
        action(signal)
            .expect("an application's signal")
            .sa_sigaction
    }

    #[test]
    fn handlers_of_a_library_do_not_stay() {
        let ours = ignore as *const () as usize;
        // SAFETY: the handler does nothing. No other test uses these signals.
        unsafe {
            libc::signal(libc::SIGURG, ours);
            preserved(|| {
                libc::signal(libc::SIGURG, libc::SIG_DFL);
                libc::signal(libc::SIGWINCH, ours);
                libc::signal(libc::SIGRTMAX(), libc::SIG_IGN);
            });
        }
        assert_eq!(handler(libc::SIGURG), ours);
        assert_eq!(handler(libc::SIGWINCH), libc::SIG_DFL);
        assert_eq!(handler(libc::SIGRTMAX()), libc::SIG_DFL);
    }
}
