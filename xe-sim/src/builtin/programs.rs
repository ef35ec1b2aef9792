//! The names of user kernels. The driver keeps the binary of each user module in the process's memory, in the same format
//! as its built-in modules.

use zeusm_process::maps::{self, Mapping};

use super::zebin::{Code, find_in_module, modules};
use crate::memory::read_user;

/// Larger mappings are not searched, because they hold data and not modules.
const LARGEST: u64 = 256 << 20;

/// The name and the whole code of this kernel, if its module is in the process's memory.
pub(super) fn named(code: &Code<'_>) -> Option<(String, Vec<u8>)> {
    maps::mappings()
        .iter()
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

/// The start and length of a mapping, if it is private, anonymous and writable.
fn private(mapping: &Mapping) -> Option<(u64, usize)> {
    let length = mapping.range.len();
    let is_private = mapping.is_readable && mapping.is_writable && !mapping.is_shared;
    (is_private && mapping.path.is_none() && length as u64 <= LARGEST)
        .then_some((mapping.range.start as u64, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_programs_own_memory_counts() {
        let private = |rest| {
            let line = format!("7f0000000000-7f0000002000 {rest}");
            Mapping::parse(line.as_bytes()).as_ref().and_then(private)
        };
        assert_eq!(
            private("rw-p 00000000 00:00 0"),
            Some((0x7f00_0000_0000, 0x2000))
        );
        assert_eq!(private("r--p 00000000 00:00 0"), None);
        assert_eq!(private("rw-p 00000000 08:01 42 /usr/lib/a.so"), None);
    }
}
