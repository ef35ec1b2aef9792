//! The devices: the machine's processors and memory, presented once as a GPU and once as a CPU.
//!
//! SYCL and its packages prefer GPUs, and SYCL 2026 looks only at drivers that have one. oneMKL has code for processors,
//! which it calls for a device of type CPU; for a GPU it looks for Intel's binaries, which this runtime does not have.

use level_zero_sys as sys;

use crate::abi::result::ZeResult;
use crate::handle::{self, Kind};
use crate::system::processor;

/// A device. All memory is accessible to every device. A device lives as long as the process, and a fork's child has the
/// same ones.
#[derive(Debug, PartialEq, Eq)]
pub struct Device {
    /// Its index in [`DEVICES`], which its handle contains.
    number: u32,
    /// What it is to the API.
    type_: sys::ze_device_type_t,
}

/// All devices, in the order of `zeDeviceGet`. The GPU is first, as programs take the first device by default.
pub static DEVICES: [Device; 2] = [
    Device {
        number: 0,
        type_: sys::ZE_DEVICE_TYPE_GPU,
    },
    Device {
        number: 1,
        type_: sys::ZE_DEVICE_TYPE_CPU,
    },
];

impl Device {
    /// Its handle.
    pub fn handle(&self) -> sys::ze_device_handle_t {
        handle::permanent(Kind::Device, self.number) as sys::ze_device_handle_t
    }

    /// What it is to the API.
    pub fn device_type(&self) -> sys::ze_device_type_t {
        self.type_
    }

    /// Its name, which says that it is a CPU whatever its type.
    pub fn name(&self) -> String {
        let presented = match self.type_ {
            sys::ZE_DEVICE_TYPE_CPU => " as CPU",
            _ => "",
        };
        format!("zeusm CPU runtime{presented} ({})", processor::model())
    }

    /// Its identity, the same in every process of this machine and different from those of the other devices.
    pub fn uuid(&self) -> [u8; 16] {
        let mut uuid = processor::identity();
        if let Some(first) = uuid.first_mut() {
            *first ^= self.number as u8;
        }
        uuid
    }
}

/// The device that `handle` names.
///
/// # Errors
/// `ZE_RESULT_ERROR_INVALID_NULL_HANDLE` for null, `ZE_RESULT_ERROR_INVALID_ARGUMENT` for a handle of anything else.
pub fn find(handle: sys::ze_device_handle_t) -> ZeResult<&'static Device> {
    let number = handle::permanent_number(Kind::Device, handle)?;
    DEVICES
        .get(number as usize)
        .ok_or(sys::ZE_RESULT_ERROR_INVALID_ARGUMENT)
}
