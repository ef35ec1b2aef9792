//! The selection of the process's runtime.

use std::env;
use std::path::Path;

use level_zero_sys as sys;
use once_cell::race::OnceRef;
use zeusm_process::variables::{self, InvalidVariable, switch};
use zeusm_process::{Local, Mutex};

use super::serving::{RUNTIME_VARIABLE, Runtime, RuntimeKind};
use super::{cpu, platform};
use crate::error::{Error, Result};

/// The environment variable that disables the default pools, as a switch.
pub const POOL_VARIABLE: &str = "ZEUSM_POOL";

/// The runtime of the process and its children, once it is selected.
static SERVING: OnceRef<'static, Runtime> = OnceRef::new();
/// Locked during the selection. It is process-local, so that a fork's child cannot inherit it locked.
static CHOOSING: Local<Mutex<()>> = Local::new();

impl Runtime {
    /// The runtime of this process; the first call selects it.
    ///
    /// # Errors
    /// [`Error::InvalidVariable`] for an invalid environment variable; [`Error::Load`], [`Error::CpuRuntimeMissing`] or
    /// [`Error::NoDevice`] when the selected runtime cannot be used.
    pub fn get() -> Result<&'static Self> {
        let runtime = Self::select()?;
        runtime.hardware()?;
        Ok(runtime)
    }

    /// As [`get`](Self::get), without listing the devices of the CPU runtime, which [can still be
    /// chosen](Self::set_cpu_devices).
    ///
    /// # Errors
    /// As for [`get`](Self::get).
    pub fn select() -> Result<&'static Self> {
        if let Some(runtime) = SERVING.get() {
            return Ok(runtime);
        }
        let _choosing = CHOOSING.get_or_default().lock();
        let choice = || {
            // It is read by the first allocation, which cannot report a wrong value.
            switch(env::var_os, POOL_VARIABLE)?;
            Self::open()
        };
        SERVING.get_or_try_init(choice)
    }

    /// The environment variables that begin with `ZEUSM_` and do not exist: misspelt ones, which have no effect.
    #[must_use]
    pub fn unknown_variables() -> Vec<String> {
        variables::unknown()
    }

    /// Opens and initialises the library that [`RUNTIME_VARIABLE`] chooses: by default an Intel GPU's if one is usable, else the
    /// CPU runtime.
    fn open() -> Result<&'static Self> {
        let choice = env::var_os(RUNTIME_VARIABLE).unwrap_or_default();
        let choice = choice.to_string_lossy();
        let chosen = |library: Result<&'static sys::Library>, kind| {
            library
                .and_then(|library| Self::start(library, kind, "it was chosen"))
                .map_err(|cause| Error::ChoiceFailed {
                    choice: choice.to_string(),
                    variable: RUNTIME_VARIABLE,
                    cause: Box::new(cause),
                })
        };
        let runtime = match &*choice {
            "" | "auto" => platform::automatic(),
            "system" => chosen(platform::load_system(), RuntimeKind::System),
            "cpu" => chosen(cpu::load(), RuntimeKind::Cpu),
            path if Path::new(path).is_absolute() => chosen(
                // SAFETY: the variable of the environment is as trusted as those that the dynamic linker obeys.
                unsafe { sys::load_from(path) }.map_err(Error::from),
                RuntimeKind::Custom,
            ),
            other => Err(Error::from(InvalidVariable {
                name: RUNTIME_VARIABLE,
                value: other.to_owned(),
                expected: "auto, system, cpu or the absolute path of a library".to_owned(),
            })),
        }?;
        Ok(Box::leak(Box::new(runtime)))
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use zeusm_process::testing::in_child;

    #[test]
    fn a_child_selects_although_its_parent_was_selecting() {
        let _choosing = CHOOSING.get_or_default().lock();
        // The library may be missing in these tests; the call only has to return.
        in_child(|| drop(Runtime::get()));
    }
}
