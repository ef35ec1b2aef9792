//! The identities that a handle is compared by: machine, device, file, user.

use std::fmt::Write;
use std::fs;
use std::os::fd::AsFd;

use once_cell::race::OnceBox;

use super::Error;

/// The kernel's id of this boot: the same in all processes and containers of a machine, and different on every other.
pub fn boot_id() -> Result<[u8; 16], Error> {
    static BOOT_ID: OnceBox<[u8; 16]> = OnceBox::new();
    if let Some(boot) = BOOT_ID.get() {
        return Ok(*boot);
    }
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").map_err(|cause| {
        let what = "cannot read this machine's identity, /proc/sys/kernel/random/boot_id";
        Error::System { what, cause }
    })?;
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    let boot = u128::from_str_radix(&digits, 16).unwrap_or(0).to_be_bytes();
    Ok(*BOOT_ID.get_or_init(|| Box::new(boot)))
}

/// A UUID in its textual form.
pub fn format_uuid(bytes: [u8; 16]) -> String {
    let mut text = String::new();
    for (index, byte) in bytes.iter().enumerate() {
        if [4, 6, 8, 10].contains(&index) {
            text.push('-');
        }
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Identifies a file on this machine. A descriptor's number does not, as it may have been reused for another file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FileId {
    pub device: u64,
    pub inode: u64,
}

impl FileId {
    /// The file of an open descriptor.
    pub fn of(descriptor: impl AsFd) -> Option<Self> {
        let status = rustix::fs::fstat(descriptor).ok()?;
        Some(Self {
            device: status.st_dev,
            inode: status.st_ino,
        })
    }
}

/// Whether a process of this user is trusted: it is root, or the effective user of this process. The driver's part of a
/// trusted process's handles is passed to the driver, which checks little of it.
pub fn is_trusted(user: u32) -> bool {
    user == 0 || user == rustix::process::geteuid().as_raw()
}
