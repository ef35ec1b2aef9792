//! A Level Zero library that serves a process, with its drivers and devices.

use std::ffi::CStr;
use std::path::{Path, PathBuf};
use std::ptr;

use level_zero_sys as sys;
use once_cell::race::OnceBox;

use crate::call::last_error;
use crate::confinement;
use crate::device::{Device, Driver};
use crate::error::{Error, Result};
use crate::shared_library;

/// The environment variable that chooses the runtime.
pub const RUNTIME_VARIABLE: &str = "ZEUSM_RUNTIME";

/// The origin of the Level Zero library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuntimeKind {
    /// The system's loader and the drivers that it finds.
    System,
    /// The CPU runtime of this package.
    Cpu,
    /// A library chosen by its path.
    Custom,
}

impl RuntimeKind {
    /// `system`, `cpu` or `custom`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Cpu => "cpu",
            Self::Custom => "custom",
        }
    }
}

/// An initialised Level Zero library with at least one device.
#[derive(Debug)]
pub struct Runtime {
    library: &'static sys::Library,
    pub(super) kind: RuntimeKind,
    reason: String,
    pub(super) warning: Option<String>,
    hardware: OnceBox<Hardware>,
}

/// The drivers and devices of a library.
#[derive(Debug)]
pub(super) struct Hardware {
    drivers: Vec<Driver>,
    devices: Vec<Device>,
}

/// The name under which SYCL runtimes open the Level Zero loader.
pub(super) const LOADER: &CStr = if cfg!(windows) {
    c"ze_loader.dll"
} else {
    c"libze_loader.so.1"
};

impl Runtime {
    /// Initialises a library and lists its devices, except those of the CPU runtime, which always has some.
    pub(super) fn start(
        library: &'static sys::Library,
        kind: RuntimeKind,
        reason: &str,
    ) -> Result<Self> {
        let none = |reason: String| Error::NoDevice {
            library: library.path().display().to_string(),
            reason,
        };
        // SAFETY: zeInit takes flags only.
        unsafe { call!(library, zeInit(sys::ZE_INIT_FLAG_GPU_ONLY.0)) }.map_err(|error| {
            // Other libraries do not accept a null driver.
            let description = match kind {
                RuntimeKind::Cpu => last_error(library, ptr::null_mut()),
                _ => String::new(),
            };
            none(if description.is_empty() {
                error.to_string()
            } else {
                description
            })
        })?;
        let runtime = Self {
            library,
            kind,
            reason: reason.to_owned(),
            warning: None,
            hardware: OnceBox::new(),
        };
        if kind != RuntimeKind::Cpu {
            runtime.hardware()?;
        }
        Ok(runtime)
    }

    /// The drivers and devices, listed on first use.
    pub(super) fn hardware(&self) -> Result<&Hardware> {
        self.hardware
            .get_or_try_init(|| Hardware::list(self.library).map(Box::new))
    }

    /// The origin of the library.
    #[must_use]
    pub fn kind(&self) -> RuntimeKind {
        self.kind
    }

    /// Why this runtime was selected, as text.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// A warning for the user: a GPU is present but cannot be used, and why.
    #[must_use]
    pub fn warning(&self) -> Option<&str> {
        self.warning.as_deref()
    }

    /// The path of the library, or the name that it was opened by.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.library
            .zeInit
            .and_then(|init| shared_library::path_of(init as *const _))
            .unwrap_or_else(|| Path::new(self.library.path()).to_owned())
    }

    /// The path of another Level Zero library that a SYCL runtime of this process uses, as it was loaded first under the
    /// loader's name.
    #[must_use]
    pub fn other_library(&self) -> Option<PathBuf> {
        let theirs = shared_library::function(LOADER, c"zeInit")?;
        let is_this = |init| ptr::eq(theirs, init as *const _);
        if self.library.zeInit.is_some_and(is_this) {
            return None;
        }
        shared_library::path_of(theirs)
    }

    /// The driver of a foreign device handle, of a SYCL runtime for instance.
    ///
    /// # Errors
    /// [`Error::OtherRuntime`] when no driver of this library lists the handle, which must not be used then.
    pub fn driver_of(&self, handle: sys::ze_device_handle_t) -> Result<&Driver> {
        let theirs = self.other_library();
        // Two copies of one library may use the same handles for different objects.
        if theirs.is_none() {
            for driver in self.drivers() {
                if driver.lists(handle)? {
                    return Ok(driver);
                }
            }
        }
        Err(Error::OtherRuntime {
            ours: self.path(),
            theirs,
            variable: RUNTIME_VARIABLE,
        })
    }

    /// The library itself.
    #[must_use]
    pub fn library(&self) -> &'static sys::Library {
        self.library
    }

    /// Its drivers.
    #[must_use]
    pub fn drivers(&self) -> &[Driver] {
        self.hardware().map_or(&[], |hardware| &hardware.drivers)
    }

    /// Its GPUs, then its CPUs, of all drivers; at least one.
    #[must_use]
    pub fn devices(&self) -> &[Device] {
        self.hardware().map_or(&[], |hardware| &hardware.devices)
    }

    /// The first device, which is a GPU if there is one.
    ///
    /// # Errors
    /// [`Error::NoDevice`] when there is none.
    pub fn default_device(&self) -> Result<Device> {
        let hardware = self.hardware()?;
        Ok(hardware.devices[0].clone()) // There is at least one.
    }
}

impl Hardware {
    fn list(library: &'static sys::Library) -> Result<Self> {
        let none = |reason: String| Error::NoDevice {
            library: library.path().display().to_string(),
            reason,
        };
        let drivers = Driver::all(library).map_err(|error| none(error.to_string()))?;
        let mut devices = Vec::new();
        for driver in &drivers {
            devices.extend_from_slice(driver.devices()?);
        }
        // The first device is the default one. The sort is stable.
        devices.sort_by_key(|device: &Device| !device.is_gpu());
        if devices.is_empty() {
            return Err(none(format!(
                "{} drivers, no GPU or CPU device",
                drivers.len()
            )));
        }
        // Of all drivers, only the CPU runtime works in a fork's child.
        if !drivers.iter().all(Driver::is_cpu_runtime) {
            confinement::confine_driver();
        }
        Ok(Self { drivers, devices })
    }
}
