//! The names of user kernels. The driver keeps the binary of each user module in the process's memory, in the same format
//! as its built-in modules.

use std::fs;

use super::library::{Code, find_in_module, modules};
use crate::memory::read_user;

/// Larger mappings are not searched, because they hold data and not modules.
const LARGEST: u64 = 256 << 20;

/// The name and the whole code of this kernel, if its module is in the process's memory.
pub(super) fn named(code: &Code<'_>) -> Option<(String, Vec<u8>)> {
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    maps.lines()
        .filter_map(private)
        .find_map(|(start, length)| {
            let mut bytes = vec![0; length];
            // The mapping may have been removed since the list was read.
            if !read_user(start, &mut bytes) {
                return None;
            }
            modules(&bytes).find_map(|module| {
                let found = find_in_module(module, code).ok()??;
                Some((found.name, found.code.to_vec()))
            })
        })
}

/// The start and length of the mapping in a line of `/proc/self/maps`, if it is private, anonymous and writable.
fn private(line: &str) -> Option<(u64, usize)> {
    let mut fields = line.split_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    if !fields.next()?.starts_with("rw-p") || fields.nth(2)? != "0" {
        return None;
    }
    let number = |text| u64::from_str_radix(text, 16).ok();
    let (start, end) = (number(start)?, number(end)?);
    (end - start <= LARGEST).then_some((start, (end - start) as usize))
}

#[cfg(test)]
mod tests {
    use super::private;

    #[test]
    fn only_the_programs_own_memory_counts() {
        let line = |rest| format!("7f0000000000-7f0000002000 {rest}");
        assert_eq!(
            private(&line("rw-p 00000000 00:00 0")),
            Some((0x7f00_0000_0000, 0x2000))
        );
        assert_eq!(private(&line("r--p 00000000 00:00 0")), None);
        assert_eq!(private(&line("rw-p 00000000 08:01 42 /usr/lib/a.so")), None);
    }
}
