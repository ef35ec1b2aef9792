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
    let _ = io::stderr().write_all(text(lines).as_bytes());
}

/// The lines, each of which stays one: a file's name may have a newline.
fn text(lines: impl IntoIterator<Item = impl Display>) -> String {
    let lines = lines.into_iter().map(|it| it.to_string());
    let line = |it: String| format!("zeusm check: {}\n", it.replace('\n', "\\n"));
    lines.map(line).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_line_stays_one() {
        let text = super::text(["File \"a\nb.py\"", "c"]);
        assert_eq!(text, "zeusm check: File \"a\\nb.py\"\nzeusm check: c\n");
    }
}
