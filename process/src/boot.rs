//! The identity of the running machine.

use std::fs;
use std::io;

use crate::lazy::Lazy;

/// The kernel's id of this boot: the same in all processes and containers of a machine, and different on every other.
///
/// # Errors
/// That of reading `/proc/sys/kernel/random/boot_id`.
pub fn boot_id() -> io::Result<[u8; 16]> {
    static BOOT_ID: Lazy<[u8; 16]> = Lazy::new();
    if let Some(known) = BOOT_ID.get() {
        return Ok(*known);
    }
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    let number = u128::from_str_radix(&digits, 16).map_err(io::Error::other)?;
    Ok(*BOOT_ID.get_or_make(|| number.to_be_bytes()))
}
