//! Text on the standard error.
//!
//! Errors of the stream are ignored: its reader may be gone (`program 2>&1 | head`), and the program goes on as it does
//! without the checker. The macros of the standard library would panic.

use std::fmt::Display;
use std::io::{self, Write};

use libc::c_int;

/// Opens `/dev/null` in the place of a closed standard error. The program's next file would get its number, and the text.
pub fn keep_open() {
    const ERRORS: c_int = libc::STDERR_FILENO;
    // SAFETY: the path is a C string, and only a descriptor that this opens is closed.
    unsafe {
        if libc::fcntl(ERRORS, libc::F_GETFD) != -1 {
            return;
        }
        let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
        // Another thread may have opened a file there in the meantime, which this does not replace.
        let kept = match null {
            -1 | ERRORS => null,
            lower => libc::fcntl(lower, libc::F_DUPFD, ERRORS),
        };
        for extra in [null, kept] {
            if extra != -1 && extra != ERRORS {
                libc::close(extra);
            }
        }
    }
}

/// Writes a line of the checker.
pub fn line(text: impl Display) {
    lines([text]);
}

/// Writes lines of the checker, in one piece if the system takes them so.
pub fn lines(lines: impl IntoIterator<Item = impl Display>) {
    let lines = lines.into_iter();
    let text: String = lines.map(|it| format!("zeusm check: {it}\n")).collect();
    let _ = io::stderr().write_all(text.as_bytes());
}
