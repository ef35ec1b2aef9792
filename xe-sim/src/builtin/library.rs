//! The kernels in the driver's library: ELF files of their own ("zebin"), one for each module and each model of GPU.

use std::collections::BTreeMap;
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

/// The library's name starts with this.
const DRIVER: &str = "libze_intel_gpu.so";
/// `EM_INTELGT`.
const MACHINE: u16 = 205;
const CODE: &str = ".text.";
const TABLE: &str = ".ze_info";
/// Where code may start in its section: the loading of the local ids takes this many bytes
/// (`offset_to_skip_per_thread_data_load`), and is left out where the walker makes them.
const STARTS: [usize; 2] = [0, 128];
/// No kernel is shorter: two cache lines.
const BEGIN: usize = 128;
/// A kernel that is known.
#[derive(Debug)]
pub(super) struct Kernel {
    pub(super) name: String,
    pub(super) operation: Operation,
    pub(super) info: Info,
    /// The code, from where the driver starts it.
    code: Vec<u8>,
}

/// The code in the GPU's memory from one address on.
pub(super) struct Code<'a> {
    space: &'a AddressSpace,
    at: u64,
    /// Its first bytes, for a quick look.
    begin: [u8; BEGIN],
}

impl Code<'_> {
    /// Whether all of this lies there. Kernels often begin alike, so the whole counts.
    fn is(&self, text: &[u8]) -> bool {
        if !text.starts_with(&self.begin) {
            return false;
        }
        let mut found = vec![0; text.len()];
        self.space.read(self.at, &mut found).is_ok() && found == text
    }
}

/// The kernel whose code lies at this address; searched for once.
pub(super) fn kernel(space: &AddressSpace, at: u64) -> Result<Arc<Kernel>, KernelError> {
    static KNOWN: Mutex<Vec<Arc<Kernel>>> = Mutex::new(Vec::new());
    let mut begin = [0; BEGIN];
    space.read(at, &mut begin)?;
    let code = Code { space, at, begin };
    let mut known = KNOWN.lock();
    if let Some(kernel) = known.iter().find(|kernel| code.is(&kernel.code)) {
        return Ok(Arc::clone(kernel));
    }
    // Looked for once: both searches take long.
    static FOREIGN: Mutex<BTreeMap<[u8; BEGIN], String>> = Mutex::new(BTreeMap::new());
    let mut foreign = FOREIGN.lock();
    let unknown = |name: &String| {
        let name = name.clone();
        KernelError::Unknown { at, name }
    };
    if let Some(name) = foreign.get(&begin) {
        return Err(unknown(name));
    }
    let library = driver()?;
    let Some(found) = find(&library, &code) else {
        let name = programs::name(&code).unwrap_or_else(|| "of no name".to_owned());
        return Err(unknown(foreign.entry(begin).or_insert(name)));
    };
    let kernel = Arc::new(found?);
    known.push(Arc::clone(&kernel));
    Ok(kernel)
}

/// The bytes of the driver's library, by the path from which it was loaded.
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

/// Goes through the library's modules until one holds this code.
fn find(library: &[u8], code: &Code<'_>) -> Option<Result<Kernel, KernelError>> {
    modules(library).find_map(|module| {
        let found = find_in_module(module, code).ok().flatten()?;
        let table = String::from_utf8_lossy(found.table);
        Some(describe(&found.name, found.code, &table))
    })
}

/// What may be modules in these bytes: each place at which an ELF file begins.
pub(super) fn modules(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    memmem::find_iter(bytes, &elf::ELFMAG).map(|at| &bytes[at..])
}

/// A kernel in a module.
pub(super) struct Found<'a> {
    pub(super) name: String,
    /// From where the driver starts it.
    code: &'a [u8],
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
        // The driver starts a kernel at its first instruction, or behind the loading of the local ids.
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

fn describe(name: &str, code: &[u8], table: &str) -> Result<Kernel, KernelError> {
    let unknown = || KernelError::NotSimulated(name.to_owned());
    let not_understood = |why| KernelError::Table {
        name: name.to_owned(),
        why,
    };
    Ok(Kernel {
        name: name.to_owned(),
        operation: kernels::named(name).ok_or_else(unknown)?,
        info: Info::of(name, table).map_err(not_understood)?,
        code: code.to_vec(),
    })
}
