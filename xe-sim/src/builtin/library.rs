//! Finds built-in kernels in the driver's library, which embeds an ELF file ("zebin") per module and GPU model.

use std::fs;
use std::io;
use std::sync::Arc;

use parking_lot::Mutex;
use zeusm_process::maps;

use super::info::Info;
use super::kernels::{self, Operation};
use super::programs;
use super::zebin::{BEGIN, Code, find_in_module, modules};
use crate::memory::{AddressSpace, PageFault};
use crate::report::not_simulated;

/// Prefix of the library's file name.
const DRIVER: &str = "libze_intel_gpu.so";
/// The reason why a walker's kernel was not executed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KernelError {
    #[error(transparent)]
    Fault(#[from] PageFault),
    #[error("the kernel {name} at {at:#x} is a user kernel: no execution unit is simulated")]
    User { at: u64, name: String },
}

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
            known.push(identify(&code));
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
fn identify(code: &Code<'_>) -> Known {
    let library = driver().unwrap_or_else(|error| {
        not_simulated(format_args!("the driver's library cannot be read: {error}"))
    });
    if let Some(found) = find(&library, code) {
        return found;
    }
    let Some((name, code)) = programs::named(code) else {
        not_simulated(format_args!(
            "the kernel at {:#x}, whose code begins with {:02x?}: neither the driver's library nor a module in memory has it",
            code.at, code.begin
        ))
    };
    Known {
        code,
        kernel: Err(name),
    }
}

/// Reads the file of the driver's library that is loaded in this process.
fn driver() -> io::Result<Vec<u8>> {
    let path = maps::mappings()
        .into_iter()
        .filter_map(|mapping| mapping.path)
        .find(|path| {
            path.file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with(DRIVER))
        })
        .ok_or_else(|| io::Error::other(format!("no {DRIVER} is loaded")))?;
    fs::read(path)
}

/// Searches the library's modules for this code.
fn find(library: &[u8], code: &Code<'_>) -> Option<Known> {
    modules(library).find_map(|module| {
        let found = find_in_module(module, code).ok().flatten()?;
        let name = found.name;
        let Some(operation) = kernels::named(&name) else {
            not_simulated(format_args!("the driver's own kernel {name}"))
        };
        let info = Info::of(&name, &String::from_utf8_lossy(found.table)).unwrap_or_else(|why| {
            not_simulated(format_args!(
                "the table of the driver's own kernel {name}: {why}"
            ))
        });
        Some(Known {
            code: found.code.to_vec(),
            kernel: Ok(Arc::new(Kernel {
                name,
                operation,
                info,
            })),
        })
    })
}
