//! The selection on Linux: an Intel GPU through the system's loader, or the CPU runtime.

mod gpu;
mod probe;
mod probe_cache;

use level_zero_sys as sys;

pub use gpu::{GpuNode, gpu_nodes};

use super::cpu;
use super::serving::{LOADER, Runtime, RuntimeKind};
use crate::error::{Error, Result};
use crate::shared_library;

/// The system's loader.
pub(super) fn load_system() -> Result<&'static sys::Library> {
    Ok(sys::load()?)
}

/// The system's GPU if it is usable, else the CPU.
pub(super) fn automatic() -> Result<Runtime> {
    let mut warning = None;
    if shared_library::is_loaded(LOADER) {
        // A SYCL runtime may already use this loader, and zeusm must be able to share its contexts.
        match Runtime::start(sys::load()?, RuntimeKind::System, "it was already loaded") {
            Ok(mut runtime) => {
                // `zeusm run` starts programs that find the CPU runtime in the loader's place.
                if cpu::is_packaged(&runtime.path()) {
                    runtime.kind = RuntimeKind::Cpu;
                }
                return Ok(runtime);
            }
            Err(error) => {
                warning = Some(format!(
                    "a Level Zero loader without a usable device was loaded before zeusm ({error}); zeusm \
                     serves its own memory from the CPU, but a SYCL runtime of this process cannot see it: \
                     import zeusm before dpctl"
                ));
            }
        }
    }
    let reason = match gpu::Machine::default().find() {
        gpu::Finding::None(why) => why,
        gpu::Finding::Unusable(why) => {
            warning.get_or_insert(format!("an Intel GPU is present but cannot be used: {why}"));
            why
        }
        gpu::Finding::Usable(node) => {
            let serves = sys::load().map_err(Error::from).and_then(|library| {
                let reason = format!("{} is an Intel GPU", node.display());
                Runtime::start(library, RuntimeKind::System, &reason)
            });
            match serves {
                Ok(runtime) => return Ok(runtime),
                Err(error) => {
                    let why = format!("{}: {error}", node.display());
                    warning.get_or_insert(format!(
                        "an Intel GPU is present but cannot be used: {why}"
                    ));
                    why
                }
            }
        }
    };
    let mut runtime = Runtime::start(cpu::load()?, RuntimeKind::Cpu, &reason)?;
    runtime.warning = warning;
    Ok(runtime)
}
