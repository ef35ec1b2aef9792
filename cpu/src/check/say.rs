//! Text on the standard error.
//!
//! Errors of the stream are ignored: its reader may be gone (`program 2>&1 | head`), and the program goes on as it does
//! without the checker. The macros of the standard library would panic.

use std::cmp::Ordering::{Equal, Greater, Less};
use std::fmt::Display;
use std::io::{self, Write};
use std::mem;
use std::os::fd::AsRawFd;

use rustix::fs::{Mode, OFlags, open};
use rustix::io::fcntl_getfd;
use rustix::stdio::{raw_stderr, stderr};

/// Opens `/dev/null` in the place of a closed standard error. The program's next file would get its number, and the text.
pub fn keep_open() {
    if fcntl_getfd(stderr()).is_ok() {
        return;
    }
    // The first of the numbers that are free: those before it are closed again, and one behind it, as another thread may have
    // opened a file there in the meantime, which this does not replace.
    let mut before = Vec::new();
    while let Ok(null) = open("/dev/null", OFlags::RDWR, Mode::empty()) {
        match null.as_raw_fd().cmp(&raw_stderr()) {
            Less => before.push(null),
            Equal => return mem::forget(null),
            Greater => return,
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
