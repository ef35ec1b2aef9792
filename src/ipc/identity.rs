//! What a handle is compared by: machine, process, device, file.

use std::fmt::Write;
use std::fs;
use std::os::fd::AsFd;
use std::sync::OnceLock;

use super::Error;

/// The kernel's id of this boot: the same in all processes and containers of a machine, and of no other machine.
pub fn boot() -> Result<[u8; 16], Error> {
    static BOOT: OnceLock<[u8; 16]> = OnceLock::new();
    if let Some(boot) = BOOT.get() {
        return Ok(*boot);
    }
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").map_err(|cause| {
        let what = "cannot read this machine's identity, /proc/sys/kernel/random/boot_id";
        Error::System { what, cause }
    })?;
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    let boot = u128::from_str_radix(&digits, 16).unwrap_or(0).to_be_bytes();
    Ok(*BOOT.get_or_init(|| boot))
}

/// Sixteen bytes as people write a UUID.
pub fn uuid(bytes: [u8; 16]) -> String {
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

/// What tells a file from all others of the machine: a descriptor's number alone may mean another file by now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct File {
    pub device: u64,
    pub inode: u64,
}

impl File {
    /// Of an open descriptor.
    pub fn of(descriptor: impl AsFd) -> Option<Self> {
        let told = rustix::fs::fstat(descriptor).ok()?;
        Some(Self {
            device: told.st_dev,
            inode: told.st_ino,
        })
    }
}

/// Whether to believe a process of this user: it is of the same effective user as this one, or root. What it says and the
/// driver's part of its handles are used without a check that the driver does not make.
pub fn is_trusted(user: u32) -> bool {
    user == 0 || user == rustix::process::geteuid().as_raw()
}
