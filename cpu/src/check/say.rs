//! Text on the standard error.
//!
//! Errors of the stream are ignored: its reader may be gone (`program 2>&1 | head`), and the program goes on as it does
//! without the checker. The macros of the standard library would panic.

use std::fmt::Display;
use std::io::{self, Write};

/// Writes a line of the checker.
pub fn line(text: impl Display) {
    lines([text]);
}

/// Writes lines of the checker, in one piece if the system takes them so.
pub fn lines(lines: impl IntoIterator<Item = impl Display>) {
    let lines = lines.into_iter();
    // A file's name may have a newline.
    let line = |it: String| format!("zeusm check: {}\n", it.replace('\n', "\\n"));
    let text: String = lines.map(|it| line(it.to_string())).collect();
    let _ = io::stderr().write_all(text.as_bytes());
}
