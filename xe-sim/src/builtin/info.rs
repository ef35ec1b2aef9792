//! Parses `.ze_info`, the YAML table of a module's kernels and their argument layouts.
//!
//! Format: "ZEBIN" in the documentation of Intel's graphics compiler.

use std::collections::BTreeMap;

use serde::Deserialize;

#[derive(Debug, Deserialize)]
struct Module {
    kernels: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
struct Entry {
    name: String,
    #[serde(default)]
    payload_arguments: Vec<PayloadArgument>,
}

#[derive(Debug, Deserialize)]
struct PayloadArgument {
    arg_type: String,
    offset: usize,
    size: usize,
    arg_index: Option<u32>,
}

/// A byte range of the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) offset: usize,
    pub(super) size: usize,
}

/// The argument layout of one kernel.
#[derive(Clone, Debug, Default)]
pub(super) struct Info {
    /// The work-group size in three dimensions, if the kernel takes it as an implicit argument.
    pub(super) local_size: Option<Slot>,
    arguments: BTreeMap<u32, Slot>,
}

impl Info {
    /// Parses the layout of the kernel with this name.
    pub(super) fn of(kernel: &str, yaml: &str) -> Result<Self, String> {
        let module: Module = serde_yaml_ng::from_str(yaml).map_err(|error| error.to_string())?;
        let entry = module
            .kernels
            .into_iter()
            .find(|entry| entry.name == kernel)
            .ok_or("it is not listed")?;
        let mut info = Self::default();
        for piece in entry.payload_arguments {
            let (offset, size) = (piece.offset, piece.size);
            match (piece.arg_type.as_str(), piece.arg_index) {
                ("arg_bypointer" | "arg_byvalue", Some(index)) => {
                    // A vector argument has several consecutive entries with the same index.
                    let slot = info.arguments.entry(index).or_insert(Slot { offset, size });
                    slot.size = offset + size - slot.offset;
                }
                ("enqueued_local_size", _) => info.local_size = Some(Slot { offset, size }),
                _ => {}
            }
        }
        Ok(info)
    }

    pub(super) fn argument(&self, index: u32) -> Option<Slot> {
        self.arguments.get(&index).copied()
    }
}

#[cfg(test)]
mod tests;
