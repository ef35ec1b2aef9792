#![allow(clippy::unwrap_used)]

use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd};

use super::*;
use crate::machine;

fn offset(device: &Device, handle: u32, flags: u32) -> Result<u64> {
    let mut argument = drm_xe_gem_mmap_offset {
        handle,
        flags,
        ..Default::default()
    };
    map_offset(device, &mut argument).map(|()| argument.offset)
}

#[test]
fn only_the_barrier_page_of_a_discrete_gpu_has_a_flag() {
    let gpu = |name| Device::new(&machine::named(name).unwrap().slots[0]);
    let (integrated, discrete) = (gpu("lnl"), gpu("bmg"));
    let handle = discrete.buffers.add(Buffer::new(4096, None).unwrap());
    assert!(offset(&discrete, handle, 0).is_ok());
    let barrier = DRM_XE_MMAP_OFFSET_FLAG_PCI_BARRIER;
    assert!(offset(&discrete, 0, barrier).is_ok());
    for (device, handle, flags) in [
        (&discrete, handle, barrier),
        (&discrete, handle, 2),
        (&integrated, 0, barrier),
    ] {
        assert_eq!(offset(device, handle, flags), Err(Errno::INVAL));
    }
}

fn imported(device: &Device, descriptor: RawFd) -> Result<u32> {
    let mut argument = drm_prime_handle {
        fd: descriptor,
        ..Default::default()
    };
    import(device, &mut argument).map(|()| argument.handle)
}

#[test]
fn only_buffers_are_imported() {
    let device = Device::new(&machine::named("lnl").unwrap().slots[0]);
    let program = File::open(std::env::current_exe().unwrap()).unwrap();
    // SAFETY: the name is a C string.
    let memory = unsafe { libc::memfd_create(c"of the program".as_ptr(), libc::MFD_CLOEXEC) };
    // SAFETY: the call above created the descriptor.
    let memory = unsafe { File::from_raw_fd(memory) };
    memory.set_len(4096).unwrap();
    for file in [program, memory] {
        assert_eq!(imported(&device, file.as_raw_fd()), Err(Errno::INVAL));
    }
    assert_eq!(imported(&device, -1), Err(Errno::BADF));
}

#[test]
fn an_imported_buffer_is_in_the_vram_of_its_own_gpu() {
    let slots = machine::named("bmg2").unwrap().slots;
    let (first, again, second) = (
        Device::new(&slots[0]),
        Device::new(&slots[0]),
        Device::new(&slots[1]),
    );
    let buffer = Buffer::new(65536, first.vram.as_ref()).unwrap();
    let descriptor = buffer.descriptor();
    let handle = first.buffers.add(buffer);
    assert_eq!(imported(&first, descriptor), Ok(handle));
    for (device, is_vram) in [(&again, true), (&second, false)] {
        let handle = imported(device, descriptor).unwrap();
        assert_eq!(device.buffers.get(handle).unwrap().is_vram, is_vram);
    }
}
