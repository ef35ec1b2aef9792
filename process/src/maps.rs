//! The files and memory that are mapped into this process, as the kernel names them.
//!
//! Each line is read for itself, and names are bytes: a file may have any. (The crate procfs reads all lines or none.)

use std::ffi::OsStr;
use std::fs;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::str;

/// One mapping of a file or of anonymous memory.
#[derive(Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Its addresses.
    pub range: Range<usize>,
    /// Whether the process may read it.
    pub is_readable: bool,
    /// Whether the process may write to it.
    pub is_writable: bool,
    /// Whether other processes see what is written.
    pub is_shared: bool,
    /// The file, if it has a name; with `(deleted)` behind it if it has been deleted.
    pub path: Option<PathBuf>,
}

impl Mapping {
    /// From a line of `/proc/self/maps`: `start-end permissions offset device inode path`, with a path that may have blanks.
    ///
    /// Source: `proc_pid_maps(5)`.
    #[must_use]
    pub fn parse(line: &[u8]) -> Option<Self> {
        let mut fields = line.splitn(6, |byte| *byte == b' ');
        let (start, end) = str::from_utf8(fields.next()?).ok()?.split_once('-')?;
        let address = |text| usize::from_str_radix(text, 16).ok();
        let permissions = fields.next()?;
        let name = fields.nth(3).unwrap_or_default().trim_ascii_start();
        Some(Self {
            range: address(start)?..address(end)?,
            is_readable: permissions.contains(&b'r'),
            is_writable: permissions.contains(&b'w'),
            is_shared: permissions.contains(&b's'),
            path: name
                .starts_with(b"/")
                .then(|| OsStr::from_bytes(name).into()),
        })
    }
}

/// Every mapping, in the order of addresses; none where /proc is not mounted.
#[must_use]
pub fn mappings() -> Vec<Mapping> {
    let maps = fs::read("/proc/self/maps").unwrap_or_default();
    maps.split(|byte| *byte == b'\n')
        .filter_map(Mapping::parse)
        .collect()
}

/// The path of the file that holds the code or data at `address`.
#[must_use]
pub fn file_at(address: usize) -> Option<PathBuf> {
    let mut mappings = mappings().into_iter();
    mappings
        .find(|mapping| mapping.range.contains(&address))?
        .path
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_line_is_read() {
        let line =
            b"7f5a00001000-7f5a00003000 r-xp 00002000 fe:01 42                 /opt/a b/lib\xff.so.1";
        let mapping = Mapping::parse(line).unwrap();
        let expected = Mapping {
            range: 0x7f5a_0000_1000..0x7f5a_0000_3000,
            is_readable: true,
            is_writable: false,
            is_shared: false,
            path: Some(OsStr::from_bytes(b"/opt/a b/lib\xff.so.1").into()),
        };
        assert_eq!(mapping, expected);
        let stack = b"7ffc0000-7ffd0000 rw-p 00000000 00:00 0  [stack]";
        let mapping = Mapping::parse(stack).unwrap();
        assert!(mapping.is_writable && mapping.path.is_none());
        assert!(Mapping::parse(b"7ffc0000-7ffd0000 rw-s 00000000 00:00 0").is_some());
        assert!(Mapping::parse(b"").is_none());
    }

    #[test]
    fn this_test_is_in_its_own_program() {
        let here = this_test_is_in_its_own_program as fn() as usize;
        assert_eq!(file_at(here).unwrap(), std::env::current_exe().unwrap());
    }
}
