//! The driver's format of modules, an ELF file ("zebin"), and the search for code in one.

use memchr::memmem;
use object::elf::FileHeader64;
use object::read::elf::{FileHeader, SectionHeader};
use object::{Endianness, elf};

use crate::memory::AddressSpace;

/// The ELF machine `EM_INTELGT`.
const MACHINE: u16 = 205;
const CODE: &str = ".text.";
const TABLE: &str = ".ze_info";
/// Possible entry points in a code section: its start, or the instruction after the loading of the local ids
/// (`offset_to_skip_per_thread_data_load`), which the driver skips if the walker generates the ids. Its length depends on
/// the kernel; instructions after it begin a cache line.
const STARTS: [usize; 5] = [0, 64, 128, 192, 256];
/// The number of bytes compared first. Every kernel is at least this long (two cache lines).
pub(super) const BEGIN: usize = 128;

/// Machine code in GPU memory, starting at an address.
pub(super) struct Code<'a> {
    pub(super) space: &'a AddressSpace,
    pub(super) at: u64,
    /// The first bytes, for a fast comparison.
    pub(super) begin: [u8; BEGIN],
}

impl Code<'_> {
    /// Whether GPU memory holds exactly `text`. All bytes are compared, because different kernels can share a prefix.
    pub(super) fn is(&self, text: &[u8]) -> bool {
        if !text.starts_with(&self.begin) {
            return false;
        }
        let mut found = vec![0; text.len()];
        self.space.read(self.at, &mut found).is_ok() && found == text
    }
}

/// Candidate modules in these bytes: every position with the ELF magic number.
pub(super) fn modules(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    memmem::find_iter(bytes, &elf::ELFMAG).map(|at| &bytes[at..])
}

/// A kernel that was found in a module.
pub(super) struct Found<'a> {
    pub(super) name: String,
    /// The machine code from the entry point.
    pub(super) code: &'a [u8],
    pub(super) table: &'a [u8],
}

pub(super) fn find_in_module<'a>(
    module: &'a [u8],
    code: &Code<'_>,
) -> object::read::Result<Option<Found<'a>>> {
    let header = FileHeader64::<Endianness>::parse(module)?;
    let endian = header.endian()?;
    if header.e_machine(endian) != MACHINE {
        return Ok(None);
    }
    let sections = header.sections(endian, module)?;
    for section in sections.iter() {
        let name = String::from_utf8_lossy(sections.section_name(endian, section)?);
        let Some(name) = name.strip_prefix(CODE) else {
            continue;
        };
        let text = section.data(endian, module)?;
        let Some(start) = STARTS
            .into_iter()
            .find(|&start| text.get(start..).is_some_and(|text| code.is(text)))
        else {
            continue;
        };
        let Some((_, table)) = sections.section_by_name(endian, TABLE.as_bytes()) else {
            continue;
        };
        return Ok(Some(Found {
            name: name.to_owned(),
            code: &text[start..],
            table: table.data(endian, module)?,
        }));
    }
    Ok(None)
}
