//! The selection on Windows: the system's loader, which Intel's graphics driver installs, or the CPU runtime.
//!
//! For a library's file name alone, Windows gives the first that was loaded of that name. A SYCL runtime that starts after the CPU
//! runtime, `lib\ze_loader.dll`, uses that, unless the system's loader was opened before, usable or not.

use std::ffi::OsString;
use std::os::windows::ffi::OsStringExt;
use std::path::PathBuf;

use level_zero_sys as sys;
use windows_sys::Win32::Foundation::MAX_PATH;
use windows_sys::Win32::System::SystemInformation::GetSystemDirectoryW;

use super::cpu;
use super::serving::{LOADER, RUNTIME_VARIABLE, Runtime, RuntimeKind};
use crate::error::{Error, Result};
use crate::shared_library;

/// The system's loader.
///
/// # Errors
/// [`Error::NoDevice`] without a driver.
pub(super) fn load_system() -> Result<&'static sys::Library> {
    if !is_present() {
        return Err(Error::NoDevice {
            library: file().display().to_string(),
            reason: "there is no such file, which Intel's graphics driver installs".to_owned(),
        });
    }
    Ok(sys::load()?)
}

/// The system's loader if it has a usable device, else the CPU.
pub(super) fn automatic() -> Result<Runtime> {
    let is_present = is_present();
    let (reason, order) = match is_loaded() {
        // A SYCL runtime may already use it, and zeusm must be able to share its contexts.
        true => ("it was already loaded", "import zeusm before dpctl, and "),
        false => ("Intel's graphics driver is installed", ""),
    };
    let started =
        load_system().and_then(|library| Runtime::start(library, RuntimeKind::System, reason));
    let why = match started {
        Ok(mut runtime) => {
            if cpu::is_packaged(&runtime.path()) {
                runtime.kind = RuntimeKind::Cpu;
            }
            return Ok(runtime);
        }
        Err(error) => error.to_string(),
    };
    let mut runtime = Runtime::start(cpu::load()?, RuntimeKind::Cpu, &why)?;
    // Without a driver, nothing is wrong.
    runtime.warning = is_present.then(|| {
        format!(
            "the Level Zero loader cannot be used: {why}; zeusm serves its own memory from the CPU, and a SYCL runtime of this \
             process may not see it: update Intel's graphics driver, or {order}set {RUNTIME_VARIABLE}=cpu"
        )
    });
    Ok(runtime)
}

fn is_loaded() -> bool {
    shared_library::module(LOADER).is_some()
}

fn is_present() -> bool {
    is_loaded() || file().is_file()
}

/// The loader's file in the system's folder.
fn file() -> PathBuf {
    let mut folder = [0_u16; MAX_PATH as usize];
    // SAFETY: the buffer has that many units.
    let length = unsafe { GetSystemDirectoryW(folder.as_mut_ptr(), MAX_PATH) };
    let folder = OsString::from_wide(&folder[..length as usize]);
    PathBuf::from(folder).join(LOADER.to_string_lossy().as_ref())
}
