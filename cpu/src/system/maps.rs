//! The files that are mapped into this process, as the kernel names them.

use std::fs;
use std::path::PathBuf;

/// One mapping of a file: its addresses, its offset in the file, and the path.
pub struct Mapping {
    /// The first address.
    pub start: usize,
    /// The first address behind it.
    pub end: usize,
    /// The offset in the file.
    pub offset: usize,
    /// The file.
    pub path: PathBuf,
}

/// Every mapped file, in the order of addresses; none where /proc is not mounted.
///
/// Source: `proc_pid_maps(5)`.
pub fn files() -> Vec<Mapping> {
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    maps.lines().filter_map(mapping).collect()
}

/// The file that holds the code or data at `address`.
pub fn file_at(address: usize) -> Option<Mapping> {
    files()
        .into_iter()
        .find(|mapping| (mapping.start..mapping.end).contains(&address))
}

/// `start-end permissions offset device inode path`, with a path that may have blanks.
fn mapping(line: &str) -> Option<Mapping> {
    let hexadecimal = |text| usize::from_str_radix(text, 16).ok();
    let path = line.get(line.find('/')?..)?.into();
    let mut fields = line.split(' ');
    let (start, end) = fields.next()?.split_once('-')?;
    let offset = hexadecimal(fields.nth(1)?)?;
    Some(Mapping {
        start: hexadecimal(start)?,
        end: hexadecimal(end)?,
        offset,
        path,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_line_is_read() {
        let line =
            "7f5a00001000-7f5a00003000 r-xp 00002000 fe:01 42                 /opt/a b/lib.so.1";
        let mapping = mapping(line).unwrap();
        assert_eq!(
            (mapping.start, mapping.end, mapping.offset),
            (0x7f5a_0000_1000, 0x7f5a_0000_3000, 0x2000)
        );
        assert_eq!(mapping.path, PathBuf::from("/opt/a b/lib.so.1"));
        assert!(super::mapping("7ffc0000-7ffd0000 rw-p 00000000 00:00 0  [stack]").is_none());
    }

    #[test]
    fn this_test_is_in_its_own_program() {
        let here = this_test_is_in_its_own_program as fn() as usize;
        assert_eq!(
            file_at(here).unwrap().path,
            std::env::current_exe().unwrap()
        );
    }
}
