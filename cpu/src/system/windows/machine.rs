//! The machine by the processor's own instruction, and by the registry.

use std::arch::x86_64::{__cpuid, __cpuid_count};
use std::ptr;

use windows_sys::Win32::System::Registry::{HKEY_LOCAL_MACHINE, RRF_RT_REG_SZ, RegGetValueA};

/// The processor's name.
pub fn model() -> Option<String> {
    const FIRST: u32 = 0x8000_0002;
    const LAST: u32 = 0x8000_0004;
    if __cpuid(0x8000_0000).eax < LAST {
        return None;
    }
    let words = (FIRST..=LAST).flat_map(|leaf| {
        let part = __cpuid(leaf);
        [part.eax, part.ebx, part.ecx, part.edx]
    });
    let bytes: Vec<u8> = words.flat_map(u32::to_le_bytes).collect();
    let name = bytes.split(|byte| *byte == 0).next()?;
    let name = String::from_utf8_lossy(name).trim().to_owned();
    (!name.is_empty()).then_some(name)
}

/// The highest clock in MHz, of processors that tell it.
pub fn megahertz() -> Option<u32> {
    const CLOCKS: u32 = 0x16;
    let clocks = (__cpuid(0).eax >= CLOCKS).then(|| __cpuid(CLOCKS))?;
    let highest = (clocks.eax & 0xffff).max(clocks.ebx & 0xffff);
    (highest > 0).then_some(highest)
}

/// Length in bytes of a line of the data cache.
pub fn cache_line() -> usize {
    ((__cpuid(1).ebx >> 8 & 0xff) * 8) as usize
}

/// Size in bytes of the largest cache, by the leaf of Intel, or that of AMD.
pub fn largest_cache() -> Option<usize> {
    let sizes = [4, 0x8000_001d].into_iter().flat_map(|leaf: u32| {
        let is_known = __cpuid(leaf & 0x8000_0000).eax >= leaf;
        let caches = (0..8).map(move |index| __cpuid_count(leaf, index));
        let caches = caches.take_while(move |cache| is_known && cache.eax & 0x1f != 0);
        caches.map(|cache| {
            let [ways, partitions] = [cache.ebx >> 22, cache.ebx >> 12 & 0x3ff];
            [ways, partitions, cache.ebx & 0xfff, cache.ecx]
                .map(|less_one| less_one as usize + 1)
                .iter()
                .product::<usize>()
        })
    });
    sizes.max()
}

/// A text that stays the same on this machine.
pub fn identity() -> Option<String> {
    let mut text = [0_u8; 64];
    let mut length = text.len() as u32;
    let (key, value) = (c"SOFTWARE\\Microsoft\\Cryptography", c"MachineGuid");
    // SAFETY: both names are C strings, and the buffer has that many bytes.
    let result = unsafe {
        RegGetValueA(
            HKEY_LOCAL_MACHINE,
            key.as_ptr().cast(),
            value.as_ptr().cast(),
            RRF_RT_REG_SZ,
            ptr::null_mut(),
            text.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    let text = text.split(|byte| *byte == 0).next()?;
    (result == 0 && !text.is_empty()).then(|| String::from_utf8_lossy(text).into_owned())
}

/// Whether the system can tell what memory is available: always.
pub fn tells_memory() -> bool {
    true
}
