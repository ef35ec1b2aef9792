//! The kernels in the driver's library: ELF files of their own ("zebin"), one for each module and each model of GPU.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use memchr::memmem;
use object::elf::FileHeader64;
use object::read::elf::{FileHeader, SectionHeader};
use object::{Endianness, elf};
use parking_lot::Mutex;

use super::KernelError;
use super::info::Info;
use super::kernels::{self, Operation};

/// The library's name starts with this.
const DRIVER: &str = "libze_intel_gpu.so";
/// `EM_INTELGT`.
const MACHINE: u16 = 205;
const CODE: &str = ".text.";
const TABLE: &str = ".ze_info";
/// So much of the code tells a kernel.
pub(super) const SIGNATURE: usize = 256;

/// A kernel that is known.
#[derive(Debug)]
pub(super) struct Kernel {
    pub(super) name: String,
    pub(super) operation: Operation,
    pub(super) info: Info,
}

type Signature = [u8; SIGNATURE];

/// The kernel whose code starts like this; asked once for each.
pub(super) fn kernel(at: u64, code: &Signature) -> Result<Arc<Kernel>, KernelError> {
    static KNOWN: OnceLock<Mutex<HashMap<Signature, Arc<Kernel>>>> = OnceLock::new();
    let mut known = KNOWN.get_or_init(Mutex::default).lock();
    if let Some(kernel) = known.get(code) {
        return Ok(Arc::clone(kernel));
    }
    let library = driver()?;
    let kernel = Arc::new(find(&library, code).unwrap_or(Err(KernelError::Unknown(at)))?);
    known.insert(*code, Arc::clone(&kernel));
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
fn find(library: &[u8], code: &Signature) -> Option<Result<Kernel, KernelError>> {
    memmem::find_iter(library, &elf::ELFMAG)
        .skip(1)
        .find_map(|at| find_in_module(&library[at..], code).ok().flatten())
}

fn find_in_module(
    module: &[u8],
    code: &Signature,
) -> object::read::Result<Option<Result<Kernel, KernelError>>> {
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
        if memmem::find(text, &code[..SIGNATURE.min(text.len())]).is_none() {
            continue;
        }
        let Some((_, table)) = sections.section_by_name(endian, TABLE.as_bytes()) else {
            continue;
        };
        let table = String::from_utf8_lossy(table.data(endian, module)?);
        let error = |why| KernelError::Table {
            name: name.to_owned(),
            why,
        };
        let info = match Info::of(name, &table).map_err(error) {
            Ok(info) => info,
            Err(error) => return Ok(Some(Err(error))),
        };
        // The driver starts a kernel at its first instruction, or behind the loading of the local ids.
        if !starts_at(text, 0, code) && !starts_at(text, info.skip, code) {
            continue;
        }
        let kernel = kernels::named(name).map(|operation| Kernel {
            name: name.to_owned(),
            operation,
            info,
        });
        return Ok(Some(
            kernel.ok_or_else(|| KernelError::NotSimulated(name.to_owned())),
        ));
    }
    Ok(None)
}

fn starts_at(text: &[u8], skip: usize, code: &Signature) -> bool {
    text.get(skip..).is_some_and(|text| {
        let length = text.len().min(SIGNATURE);
        length > 0 && text[..length] == code[..length]
    })
}
