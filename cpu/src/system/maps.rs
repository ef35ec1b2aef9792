//! The files and memory that are mapped into this process, as the kernel names them.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;

/// One mapping of a file: its addresses, its offset in the file, and the path.
pub struct Mapping {
    /// The first address.
    pub start: usize,
    /// The first address behind it.
    pub end: usize,
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

/// One mapping of a file or of anonymous memory.
#[derive(Debug, PartialEq, Eq)]
pub struct Area {
    /// The first address.
    pub start: usize,
    /// The first address behind it.
    pub end: usize,
    /// Whether it is of a file, also of one that has no name.
    pub has_file: bool,
    /// The bytes of the pages that this process has accessed and that are in memory, without the system's pages of zeros.
    pub resident: usize,
}

/// Calls `each` for every mapping, in the order of addresses; for none where the system does not tell. The system looks at each
/// page that the process has.
///
/// Source: `proc_pid_smaps(5)`.
pub fn areas(each: impl FnMut(Area)) {
    if let Ok(file) = File::open("/proc/self/smaps") {
        areas_in(BufReader::new(file), each);
    }
}

/// A mapping is a line as in `maps` and lines with a name and a value each. Names begin with a capital, addresses do not.
fn areas_in(smaps: impl BufRead, mut each: impl FnMut(Area)) {
    let mut latest = None;
    for line in smaps.split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line);
        if let Some(size) = line.strip_prefix("Rss:") {
            let kibibytes = size.trim().strip_suffix("kB").map(str::trim);
            let resident = kibibytes.and_then(|it| it.parse::<usize>().ok());
            if let (Some(area), Some(resident)) = (latest.take(), resident) {
                let resident = resident.saturating_mul(1024);
                each(Area { resident, ..area });
            }
        } else if !line.starts_with(|first: char| first.is_ascii_uppercase()) {
            latest = area(&line);
        }
    }
}

/// `start-end permissions offset device inode path`, where the inode of anonymous memory is 0.
fn area(line: &str) -> Option<Area> {
    let mut fields = line.split(' ');
    let (start, end) = addresses(fields.next()?)?;
    Some(Area {
        start,
        end,
        has_file: fields.nth(3)? != "0",
        resident: 0,
    })
}

/// `start-end permissions offset device inode path`, with a path that may have blanks.
fn mapping(line: &str) -> Option<Mapping> {
    let path = line.get(line.find('/')?..)?.into();
    let (start, end) = addresses(line.split(' ').next()?)?;
    Some(Mapping { start, end, path })
}

fn addresses(text: &str) -> Option<(usize, usize)> {
    let (start, end) = text.split_once('-')?;
    Some((hexadecimal(start)?, hexadecimal(end)?))
}

fn hexadecimal(text: &str) -> Option<usize> {
    usize::from_str_radix(text, 16).ok()
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
            (mapping.start, mapping.end),
            (0x7f5a_0000_1000, 0x7f5a_0000_3000)
        );
        assert_eq!(mapping.path, PathBuf::from("/opt/a b/lib.so.1"));
        assert!(super::mapping("7ffc0000-7ffd0000 rw-p 00000000 00:00 0  [stack]").is_none());
    }

    #[test]
    fn areas_with_and_without_files_are_read() {
        let text = b"7f0000-7f2000 rw-s 00000000 00:01 7          /memfd:\xff (deleted)\n\
            Size:                  8 kB\nRss:                   4 kB\nAnonymous:             0 kB\n\
            VmFlags: rd wr sh\n\
            a00000-b00000 rw-p 00000000 00:00 0 \n\
            Size:               1024 kB\nRss:                 256 kB\n\
            ff0000-ff1000 r-xp 00000000 00:00 0          [vdso]\n";
        let mut areas = Vec::new();
        areas_in(text.as_slice(), |area| areas.push(area));
        let area = |start, end, has_file, resident| Area {
            start,
            end,
            has_file,
            resident,
        };
        let expected = [
            area(0x007f_0000, 0x007f_2000, true, 4 << 10),
            area(0x00a0_0000, 0x00b0_0000, false, 256 << 10),
        ];
        assert_eq!(areas, expected);
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
