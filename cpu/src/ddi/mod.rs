//! The API's boundary: every function by name, and the tables through which a loader finds them.
//!
//! - `declare`: the macro by which `control`, `memory`, `module` and `submission` say which function of the runtime implements a
//!   function of Level Zero, and `linux` for what other systems lack. `extension`: the runtime's own extensions.
//! - `loader`: what a loader exports beside that API. `absent`: the names that the loader exports and this runtime does not implement.
//! - `tables`: the tables of `ze_ddi.h` and `zes_ddi.h`.
//!
//! The build script makes the last two of `tables.csv` (the entries in order, with the version of the specification that added
//! each, from the headers of 1.17, and how those are declared that the oldest headers lack) and of `loader-1.32.txt` (the names that the
//! loader of that version exports).

mod absent;
mod control;
mod declare;
mod extension;
#[cfg(target_os = "linux")]
mod linux;
mod loader;
mod memory;
mod module;
mod submission;
mod tables;
