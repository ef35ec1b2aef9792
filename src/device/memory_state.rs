//! The free memory of a device, as its driver reports it: of all processes.
//!
//! Source: Level Zero specification, "Sysman programming guide", Initialization, Querying memory modules.

use std::env;
use std::ptr;

use level_zero_sys as sys;

use super::properties::Device;
use crate::call::enumerate;
use crate::error::{Error, Result};

/// The variable that enables system management in drivers of older specifications, where a device's handle is also its
/// handle there.
const LEGACY_VARIABLE: &str = "ZES_ENABLE_SYSMAN";

/// How much memory a device has, whichever process uses it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryState {
    /// Bytes that no process uses.
    pub free: u64,
    /// Bytes that programs can allocate, at most.
    pub total: u64,
}

/// A device in system management, of which the device may be a part.
struct Managed {
    handle: sys::zes_device_handle_t,
    /// The number of the part, if the device is one.
    part: Option<u32>,
}

impl Device {
    /// Asks the driver how much of the device's memory is free. Other processes count: the figures are those of `xpu-smi`, and
    /// for an integrated GPU those of SYCL. Nothing is cached.
    ///
    /// # Errors
    /// [`Error::NoMemoryState`] where the driver does not report it.
    pub fn memory_state(&self) -> Result<MemoryState> {
        let unknown = |reason: String| Error::NoMemoryState {
            device: self.to_string(),
            reason: descriptor_shortage().map_or(reason, str::to_owned),
        };
        let managed = self.managed().map_err(|error| unknown(error.to_string()))?;
        let managed = managed
            .ok_or_else(|| unknown("system management does not list the device".to_owned()))?;
        let state = self.sum_of_modules(&managed);
        let state = state.map_err(|error| unknown(error.to_string()))?;
        let state = state
            .ok_or_else(|| unknown("the driver lists no memory module of the device".to_owned()))?;
        Ok(self.in_memory_of_machine(state))
    }

    /// Converts the figures of an integrated GPU, for which Intel's driver reports the machine's available memory as the size,
    /// and as free only the pages without content, although the kernel reclaims those of files on demand. As in SYCL's figures,
    /// memory that is not available on the machine reduces what the driver offers for allocations.
    fn in_memory_of_machine(&self, state: MemoryState) -> MemoryState {
        let is_of_machine = self.is_integrated() && !self.driver().is_cpu_runtime();
        let machine = machine_memory().filter(|_| is_of_machine);
        machine.map_or(state, |machine| {
            let (total, used) = (self.memory_size(), machine.saturating_sub(state.total));
            MemoryState {
                free: total.saturating_sub(used),
                total,
            }
        })
    }

    /// The device in system management, or the device there that it is a part of.
    fn managed(&self) -> Result<Option<Managed>> {
        let devices = match self.managed_devices() {
            Ok(devices) => devices,
            Err(_) if env::var_os(LEGACY_VARIABLE).is_some_and(|value| value == "1") => {
                let handle = self.handle().cast();
                return Ok(Some(Managed { handle, part: None }));
            }
            Err(error) => return Err(error),
        };
        let of = |uuid| -> Result<_> {
            for &handle in &devices {
                if self.managed_uuid(handle)? == uuid {
                    return Ok(Some(handle));
                }
            }
            Ok(None)
        };
        if let Some(handle) = of(self.uuid())? {
            return Ok(Some(Managed { handle, part: None }));
        }
        let Some((whole, part)) = self.driver().whole_of(self.handle())? else {
            return Ok(None);
        };
        let part = Some(part);
        Ok(of(whole.uuid())?.map(|handle| Managed { handle, part }))
    }

    /// All devices of system management.
    fn managed_devices(&self) -> Result<Vec<sys::zes_device_handle_t>> {
        let library = self.driver().library();
        // SAFETY: zesInit takes flags only, and may be called again.
        unsafe { call!(library, zesInit(0)) }?;
        let drivers = enumerate(ptr::null_mut(), |count, handles| {
            // SAFETY: `enumerate` passes null or room for `count` handles.
            unsafe { call!(library, zesDriverGet(count, handles)) }
        })?;
        let mut found = Vec::new();
        for driver in drivers {
            found.extend(enumerate(ptr::null_mut(), |count, handles| {
                // SAFETY: the driver was listed; `enumerate` passes null or room for `count` handles.
                unsafe { call!(library, zesDeviceGet(driver, count, handles)) }
            })?);
        }
        Ok(found)
    }

    fn managed_uuid(&self, handle: sys::zes_device_handle_t) -> Result<[u8; 16]> {
        let mut properties = sys::zes_device_properties_t {
            core: sys::structure::<sys::ze_device_properties_t>(),
            ..sys::structure()
        };
        // SAFETY: the device was listed, and `properties` names its type.
        unsafe {
            call!(
                self.driver().library(),
                zesDeviceGetProperties(handle, &mut properties)
            )
        }?;
        Ok(properties.core.uuid.id)
    }

    /// The sum of the memory modules; `None` without any. A part has those that name it.
    fn sum_of_modules(&self, device: &Managed) -> Result<Option<MemoryState>> {
        let library = self.driver().library();
        let modules = enumerate(ptr::null_mut(), |count, handles| {
            // SAFETY: the device was listed; `enumerate` passes null or room for `count` handles.
            unsafe {
                call!(
                    library,
                    zesDeviceEnumMemoryModules(device.handle, count, handles)
                )
            }
        })?;
        let mut sum = None;
        for module in modules {
            let mut properties = sys::structure::<sys::zes_mem_properties_t>();
            let mut state = sys::structure::<sys::zes_mem_state_t>();
            // SAFETY: the module was listed, and both structures name their types.
            unsafe {
                call!(library, zesMemoryGetProperties(module, &mut properties))?;
                let is_of_part = properties.onSubdevice != 0;
                if device
                    .part
                    .is_some_and(|part| is_of_part && part != properties.subdeviceId)
                {
                    continue;
                }
                call!(library, zesMemoryGetState(module, &mut state))?;
            }
            let MemoryState { free, total } = sum.unwrap_or_default();
            sum = Some(MemoryState {
                free: free + state.free,
                total: total + state.size,
            });
        }
        Ok(sum)
    }
}

/// The machine's memory in bytes, where the system reports it.
fn machine_memory() -> Option<u64> {
    #[cfg(target_os = "linux")]
    {
        let machine = rustix::system::sysinfo();
        Some(machine.totalram * u64::from(machine.mem_unit))
    }
    #[cfg(not(target_os = "linux"))]
    None
}

/// What to do where the driver fails because no file can be opened.
fn descriptor_shortage() -> Option<&'static str> {
    #[cfg(target_os = "linux")]
    if let Err(error) = std::fs::File::open("/dev/null") {
        return match error.raw_os_error() {
            Some(libc::EMFILE) => Some(
                "the process has too many open files (EMFILE): close some, or raise `ulimit -n`",
            ),
            Some(libc::ENFILE) => Some(
                "the machine has too many open files (ENFILE): close some, or raise fs.file-max",
            ),
            _ => None,
        };
    }
    None
}
