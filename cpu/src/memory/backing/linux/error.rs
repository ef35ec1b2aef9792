//! Errors of system calls on the way to sharing memory, with advice for the user.

use std::io;

use level_zero_sys as sys;

use crate::abi::result::described;

/// A failed system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShareError {
    step: &'static str,
    code: i32,
}

impl ShareError {
    /// `step` failed with the error number `code`.
    pub const fn new(step: &'static str, code: i32) -> Self {
        Self { step, code }
    }

    /// Converts the error of `step`.
    pub fn of<E: Into<io::Error>>(step: &'static str) -> impl Fn(E) -> Self {
        move |error| Self::new(step, error.into().raw_os_error().unwrap_or(libc::EIO))
    }

    /// Whether a later attempt may succeed: a resource is exhausted. Every other error is permanent.
    pub fn is_transient(self) -> bool {
        let shortages = [
            libc::EMFILE,
            libc::ENFILE,
            libc::ENOMEM,
            libc::ENOSPC,
            libc::EAGAIN,
            libc::EINTR,
            libc::EFBIG,
        ];
        shortages.contains(&self.code)
    }

    /// Describes the error for `zeDriverGetLastErrorDescription` and returns its result code.
    pub fn report(self) -> sys::ze_result_t {
        let (result, advice) = match self.code {
            libc::EMFILE | libc::ENFILE => (
                sys::ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY,
                "there are too many open files: close some, or raise `ulimit -n`",
            ),
            libc::EFBIG => (
                sys::ZE_RESULT_ERROR_UNSUPPORTED_SIZE,
                "a memory file may not be as large as that: raise `ulimit -f`",
            ),
            libc::EPERM | libc::EACCES => (
                sys::ZE_RESULT_ERROR_INSUFFICIENT_PERMISSIONS,
                "a filter of system calls (seccomp, as in a container) or a security module forbids it: allow the call",
            ),
            libc::ENOSYS => (
                sys::ZE_RESULT_ERROR_UNSUPPORTED_FEATURE,
                "the kernel, or a filter of system calls (seccomp, as in a container), does not have it",
            ),
            libc::ENOENT => (
                sys::ZE_RESULT_ERROR_DEPENDENCY_UNAVAILABLE,
                "/proc is not mounted, and exporting memory needs it",
            ),
            _ if self.is_transient() => (
                sys::ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY,
                "something has run short: try again",
            ),
            _ => (
                sys::ZE_RESULT_ERROR_UNSUPPORTED_FEATURE,
                "it cannot be done here",
            ),
        };
        let (step, answer) = (self.step, io::Error::from_raw_os_error(self.code));
        let text = format_args!("memory cannot be shared: {step} answered {answer}: {advice}");
        described(result, text)
    }
}
