//! The properties of each GPU model that the kernel reports.

/// A GPU model. The properties that Intel's driver reads have the values of real hardware.
#[derive(Debug)]
pub(crate) struct Model {
    /// PCI device number and revision.
    pub(crate) device: u16,
    pub(crate) revision: u8,
    /// The graphics IP's version: major, minor, revision.
    pub(crate) ip: (u16, u16, u16),
    /// The size of VRAM; `None` for an integrated GPU.
    pub(crate) vram: Option<u64>,
    /// The alignment of sizes and addresses of buffers in VRAM.
    pub(crate) vram_page: u64,
    /// The masks of compute sub-slices and of L3 banks.
    pub(crate) subslices: u64,
    pub(crate) l3_banks: u64,
    /// The mask of execution units in each sub-slice.
    pub(crate) units: u64,
    /// Frequency in MHz.
    pub(crate) frequency: u32,
    /// Whether a kernel's timestamps have 64 bits instead of 32.
    pub(crate) wide_timestamps: bool,
    /// The number of slices.
    slices: u32,
}

/// Keys of the hardware configuration table, from `system_info.h` of Intel's driver.
mod key {
    pub(super) const MAX_SLICES: u32 = 1;
    pub(super) const MAX_MEMORY_CHANNELS: u32 = 10;
    pub(super) const MEMORY_TYPE: u32 = 11;
    pub(super) const THREADS_PER_UNIT: u32 = 15;
    pub(super) const MAX_RCS: u32 = 23;
    pub(super) const MAX_CCS: u32 = 24;
    pub(super) const CSR_SIZE_MB: u32 = 62;
    pub(super) const L3_BANK_SIZE_KB: u32 = 64;
    pub(super) const MAX_SUBSLICES: u32 = 70;
    pub(super) const MAX_UNITS_PER_SUBSLICE: u32 = 71;
    pub(super) const LOCAL_MEMORY_PER_SUBSLICE_KB: u32 = 73;
    pub(super) const REGIONS: u32 = 83;
}

/// Core Ultra 200V's GPU: integrated, Xe2.
pub(crate) const LUNAR_LAKE: Model = Model {
    device: 0x64a0,
    revision: 4,
    ip: (20, 4, 4),
    vram: None,
    vram_page: 4096,
    subslices: 0xff,
    l3_banks: 0xff,
    units: 0xff,
    frequency: 2050,
    wide_timestamps: false,
    slices: 2,
};

/// Arc B580: discrete, Xe2, 12 GiB.
pub(crate) const BATTLEMAGE: Model = Model {
    device: 0xe20b,
    revision: 0,
    ip: (20, 1, 4),
    vram: Some(12 << 30),
    vram_page: 65536,
    subslices: 0xf_ffff,
    l3_banks: 0xff,
    units: 0xff,
    frequency: 2850,
    wide_timestamps: true,
    slices: 5,
};

impl Model {
    /// The hardware configuration table that the GuC firmware provides, with one engine per class.
    pub(crate) fn table(&self) -> [(u32, u32); 12] {
        [
            (key::MAX_SLICES, self.slices),
            (key::MAX_SUBSLICES, self.subslices.count_ones()),
            (key::MAX_UNITS_PER_SUBSLICE, 8),
            (key::MAX_MEMORY_CHANNELS, 6),
            (key::MEMORY_TYPE, 4),
            (key::THREADS_PER_UNIT, 8),
            (key::MAX_RCS, 1),
            (key::MAX_CCS, 1),
            (key::CSR_SIZE_MB, 0),
            (key::L3_BANK_SIZE_KB, 512),
            (key::LOCAL_MEMORY_PER_SUBSLICE_KB, 128),
            (key::REGIONS, 1),
        ]
    }
}
