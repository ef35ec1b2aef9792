//! The files and memory that are mapped into this process, as the kernel names them.
//!
//! Each line is read for itself, and names are bytes: a file may have any. (The crate procfs reads all lines or none.)

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
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
    /// Whether it is of a file, also of one that has no name.
    pub has_file: bool,
    /// The file, if it has a name; with `(deleted)` behind it if it has been deleted.
    pub path: Option<PathBuf>,
}

impl Mapping {
    /// From a line of `/proc/self/maps`: `start-end permissions offset device inode path`, with a path that may have blanks. The
    /// inode of anonymous memory is 0.
    ///
    /// Source: `proc_pid_maps(5)`.
    #[must_use]
    pub fn parse(line: &[u8]) -> Option<Self> {
        let mut fields = line.splitn(6, |byte| *byte == b' ');
        let (start, end) = str::from_utf8(fields.next()?).ok()?.split_once('-')?;
        let address = |text| usize::from_str_radix(text, 16).ok();
        let permissions = fields.next()?;
        let has_file = fields.nth(2)? != b"0";
        let name = fields.next().unwrap_or_default().trim_ascii_start();
        Some(Self {
            range: address(start)?..address(end)?,
            is_readable: permissions.contains(&b'r'),
            is_writable: permissions.contains(&b'w'),
            is_shared: permissions.contains(&b's'),
            has_file,
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

/// Calls `each` for every mapping, in the order of addresses, with the bytes of the pages that this process has accessed and that
/// are in memory, without the system's pages of zeros; for none where the system does not tell. The system looks at each page
/// that the process has.
///
/// Source: `proc_pid_smaps(5)`.
pub fn mappings_with_resident(each: impl FnMut(Mapping, usize)) {
    if let Ok(file) = File::open("/proc/self/smaps") {
        read_smaps(BufReader::new(file), each);
    }
}

/// A mapping is a line as in `maps` and lines with a name and a value each. Names begin with a capital, addresses do not.
fn read_smaps(smaps: impl BufRead, mut each: impl FnMut(Mapping, usize)) {
    let mut latest = None;
    for line in smaps.split(b'\n').map_while(Result::ok) {
        if let Some(size) = line.strip_prefix(b"Rss:") {
            let size = str::from_utf8(size).ok().map(str::trim);
            let kibibytes = size.and_then(|size| size.strip_suffix("kB")?.trim().parse().ok());
            if let (Some(mapping), Some(kibibytes)) = (latest.take(), kibibytes) {
                each(mapping, usize::saturating_mul(kibibytes, 1024));
            }
        } else if !line.first().is_some_and(u8::is_ascii_uppercase) {
            latest = Mapping::parse(&line);
        }
    }
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
            has_file: true,
            path: Some(OsStr::from_bytes(b"/opt/a b/lib\xff.so.1").into()),
        };
        assert_eq!(mapping, expected);
        let stack = b"7ffc0000-7ffd0000 rw-p 00000000 00:00 0  [stack]";
        let mapping = Mapping::parse(stack).unwrap();
        assert!(mapping.is_writable && !mapping.has_file && mapping.path.is_none());
        assert!(Mapping::parse(b"7ffc0000-7ffd0000 rw-s 00000000 00:00 0").is_some());
        assert!(Mapping::parse(b"").is_none());
    }

    #[test]
    fn resident_pages_are_read() {
        let text = b"7f0000-7f2000 rw-s 00000000 00:01 7          /memfd:\xff (deleted)\n\
            Size:                  8 kB\nRss:                   4 kB\nAnonymous:             0 kB\n\
            VmFlags: rd wr sh\n\
            a00000-b00000 rw-p 00000000 00:00 0 \n\
            Size:               1024 kB\nRss:                 256 kB\n\
            ff0000-ff1000 r-xp 00000000 00:00 0          [vdso]\n";
        let mut found = Vec::new();
        read_smaps(text.as_slice(), |mapping, resident| {
            found.push((mapping.range, mapping.has_file, resident));
        });
        let expected = [
            (0x007f_0000..0x007f_2000, true, 4 << 10),
            (0x00a0_0000..0x00b0_0000, false, 256 << 10),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn this_test_is_in_its_own_program() {
        let here = this_test_is_in_its_own_program as fn() as usize;
        assert_eq!(file_at(here).unwrap(), std::env::current_exe().unwrap());
    }
}
