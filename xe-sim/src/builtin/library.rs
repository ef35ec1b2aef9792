//! Finds built-in kernels in the driver's library, which embeds an ELF file ("zebin") per module and GPU model.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use memchr::memmem;
use object::elf::FileHeader64;
use object::read::elf::{FileHeader, SectionHeader};
use object::{Endianness, elf};
use parking_lot::Mutex;

use super::KernelError;
use super::info::Info;
use super::kernels::{self, Operation};
use super::programs;
use crate::memory::AddressSpace;
use crate::report::not_simulated;

/// Prefix of the library's file name.
const DRIVER: &str = "libze_intel_gpu.so";
/// The ELF machine `EM_INTELGT`.
const MACHINE: u16 = 205;
const CODE: &str = ".text.";
const TABLE: &str = ".ze_info";
/// Possible entry points in a code section: its start, or the instruction after the loading of the local ids
/// (`offset_to_skip_per_thread_data_load`), which the driver skips if the walker generates the ids. Its length depends on
/// the kernel; instructions after it begin a cache line.
const STARTS: [usize; 5] = [0, 64, 128, 192, 256];
/// The number of bytes compared first. Every kernel is at least this long (two cache lines).
const BEGIN: usize = 128;

/// A recognised built-in kernel.
#[derive(Debug)]
pub(super) struct Kernel {
    pub(super) name: String,
    pub(super) operation: Operation,
    pub(super) info: Info,
}

/// The machine code of a kernel from its entry point, and the built-in kernel or the name of the user kernel.
struct Known {
    code: Vec<u8>,
    kernel: Result<Arc<Kernel>, String>,
}

/// Machine code in GPU memory, starting at an address.
pub(super) struct Code<'a> {
    space: &'a AddressSpace,
    at: u64,
    /// The first bytes, for a fast comparison.
    begin: [u8; BEGIN],
}

impl Code<'_> {
    /// Whether GPU memory holds exactly `text`. All bytes are compared, because different kernels can share a prefix.
    fn is(&self, text: &[u8]) -> bool {
        if !text.starts_with(&self.begin) {
            return false;
        }
        let mut found = vec![0; text.len()];
        self.space.read(self.at, &mut found).is_ok() && found == text
    }
}

/// The built-in kernel whose code is at this address. Results are cached, because both searches are slow.
pub(super) fn kernel(space: &AddressSpace, at: u64) -> Result<Arc<Kernel>, KernelError> {
    static KNOWN: Mutex<Vec<Known>> = Mutex::new(Vec::new());
    let mut begin = [0; BEGIN];
    space.read(at, &mut begin)?;
    let code = Code { space, at, begin };
    let mut known = KNOWN.lock();
    let index = match known.iter().position(|known| code.is(&known.code)) {
        Some(index) => index,
        None => {
            let new = identify(&code)?;
            known.push(new);
            known.len() - 1
        }
    };
    known[index]
        .kernel
        .clone()
        .map_err(|name| KernelError::User { at, name })
}

/// Searches the driver's library and then the user modules. A kernel that neither contains could be a built-in kernel that
/// is not recognised, which must not be mistaken for a user kernel.
fn identify(code: &Code<'_>) -> Result<Known, KernelError> {
    if let Some(found) = find(&driver()?, code) {
        return found;
    }
    let Some((name, code)) = programs::named(code) else {
        not_simulated(format_args!(
            "the kernel at {:#x}, whose code begins with {:02x?}: neither the driver's library nor a module in memory has it",
            code.at, code.begin
        ))
    };
    Ok(Known {
        code,
        kernel: Err(name),
    })
}

/// Reads the file of the driver's library that is loaded in this process.
fn driver() -> io::Result<Vec<u8>> {
    let maps = fs::read_to_string("/proc/self/maps")?;
    let path = maps
        .lines()
        .filter_map(|line| line.split_once('/').map(|(_, rest)| format!("/{rest}")))
        .map(PathBuf::from)
        .find(|path| {
            path.file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with(DRIVER))
        })
        .ok_or_else(|| io::Error::other(format!("no {DRIVER} is loaded")))?;
    fs::read(path)
}

/// Searches the library's modules for this code.
fn find(library: &[u8], code: &Code<'_>) -> Option<Result<Known, KernelError>> {
    modules(library).find_map(|module| {
        let found = find_in_module(module, code).ok().flatten()?;
        let table = String::from_utf8_lossy(found.table);
        Some(describe(&found.name, found.code, &table))
    })
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
    table: &'a [u8],
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

fn describe(name: &str, code: &[u8], table: &str) -> Result<Known, KernelError> {
    let unknown = || KernelError::NotSimulated(name.to_owned());
    let not_understood = |why| KernelError::Table {
        name: name.to_owned(),
        why,
    };
    let kernel = Kernel {
        name: name.to_owned(),
        operation: kernels::named(name).ok_or_else(unknown)?,
        info: Info::of(name, table).map_err(not_understood)?,
    };
    Ok(Known {
        code: code.to_vec(),
        kernel: Ok(Arc::new(kernel)),
    })
}
