//! The identities that a handle is compared by: machine, device, user.

use std::fmt::Write;

use super::Error;
use crate::device::Device;

/// [`zeusm_process::boot_id`], with an error that says what it is for.
pub fn boot_id() -> Result<[u8; 16], Error> {
    zeusm_process::boot_id().map_err(|cause| {
        let what = "cannot read this machine's identity, /proc/sys/kernel/random/boot_id";
        Error::System { what, cause }
    })
}

/// Checks that a handle with these identities was made on this machine, for this device.
///
/// # Errors
/// [`Error::AnotherMachine`] and [`Error::AnotherDevice`].
pub fn check(boot: [u8; 16], uuid: [u8; 16], device: &Device) -> Result<(), Error> {
    let own = boot_id()?;
    if boot != own {
        return Err(Error::AnotherMachine {
            theirs: format_uuid(boot),
            ours: format_uuid(own),
        });
    }
    if uuid != device.uuid() {
        return Err(Error::AnotherDevice {
            theirs: format_uuid(uuid),
            ours: format_uuid(device.uuid()),
            name: device.to_string(),
        });
    }
    Ok(())
}

/// A UUID in its textual form.
fn format_uuid(bytes: [u8; 16]) -> String {
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

/// Whether a process of this user is trusted: it is root, or the effective user of this process. The driver's part of a
/// trusted process's handles is passed to the driver, which checks little of it.
pub fn is_trusted(user: u32) -> bool {
    user == 0 || user == rustix::process::geteuid().as_raw()
}
