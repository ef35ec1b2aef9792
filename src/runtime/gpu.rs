//! Whether this machine has an Intel GPU that works, found out without loading the system's Level Zero loader.
//!
//! Once that loader is in the process its SONAME is taken, and the CPU runtime cannot step in for a SYCL runtime any
//! more. So the device nodes are looked at, and the driver is asked directly.

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};

use level_zero_sys as sys;

use crate::driver::Driver;

/// Intel's PCI vendor number as sysfs writes it.
const VENDOR_INTEL: &str = "0x8086";
/// The device node of WSL.
const WSL_NODE: &str = "dxg";
/// Intel's GPU drivers for Level Zero.
const DRIVERS: [&str; 2] = ["libze_intel_gpu.so.1", "libze_intel_gpu.so"];

/// What was found.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Finding {
    /// No Intel GPU.
    None,
    /// One that cannot be used, and why.
    Unusable(String),
    /// One whose driver answers, or does not let itself be asked; the device node.
    Usable(PathBuf),
}

/// The machine to look at.
pub(super) struct Machine {
    /// Where sysfs is.
    pub(super) sysfs: PathBuf,
    /// Where the device nodes are.
    pub(super) nodes: PathBuf,
    /// The driver's library, by the names or paths to try.
    pub(super) drivers: Vec<PathBuf>,
}

impl Default for Machine {
    fn default() -> Self {
        Self {
            sysfs: PathBuf::from("/sys"),
            nodes: PathBuf::from("/dev"),
            drivers: DRIVERS.map(PathBuf::from).to_vec(),
        }
    }
}

impl Machine {
    pub(super) fn find(&self) -> Finding {
        let nodes = self.gpu_nodes();
        let Some(first) = nodes.first() else {
            return Finding::None;
        };
        let open = |node: &&PathBuf| OpenOptions::new().read(true).write(true).open(node).is_ok();
        let Some(node) = nodes.iter().find(open) else {
            return Finding::Unusable(format!(
                "{} cannot be opened for reading and writing: let the user join the group that owns it \
                 (render, usually)",
                first.display()
            ));
        };
        match self.ask_driver() {
            Ok(()) => Finding::Usable(node.clone()),
            // Behind WSL's node may be anybody's GPU; only Intel's driver tells that it is Intel's.
            Err(_) if node.ends_with(WSL_NODE) => Finding::None,
            Err(why) => Finding::Unusable(why),
        }
    }

    /// The render nodes of Intel GPUs, and WSL's node for whatever GPU Windows has.
    fn gpu_nodes(&self) -> Vec<PathBuf> {
        let is_intel = |entry: &Path| {
            fs::read_to_string(entry.join("device/vendor"))
                .is_ok_and(|vendor| vendor.trim() == VENDOR_INTEL)
        };
        let mut nodes: Vec<PathBuf> = fs::read_dir(self.sysfs.join("class/drm"))
            .into_iter()
            .flatten()
            .flatten()
            .filter(|entry| entry.file_name().to_string_lossy().starts_with("renderD"))
            .filter(|entry| is_intel(&entry.path()))
            .map(|entry| self.nodes.join("dri").join(entry.file_name()))
            .collect();
        nodes.sort();
        let wsl = self.nodes.join(WSL_NODE);
        nodes.extend(wsl.exists().then_some(wsl));
        nodes
    }

    /// Opens the driver without a loader and asks for a device.
    fn ask_driver(&self) -> Result<(), String> {
        let mut refusals = Vec::new();
        for driver in &self.drivers {
            match sys::load_from(driver) {
                Ok(library) => return ask(library),
                Err(error) => refusals.push(error.to_string()),
            }
        }
        Err(format!(
            "its Level Zero driver is not installed (libze-intel-gpu1 or intel-level-zero-gpu): {}",
            refusals.join("; ")
        ))
    }
}

/// A driver that does not export the API by name can be asked through the loader only, so it gets the benefit of
/// the doubt.
fn ask(library: &'static sys::Library) -> Result<(), String> {
    if library.zeInit.is_none() || library.zeDriverGet.is_none() || library.zeDeviceGet.is_none() {
        return Ok(());
    }
    // SAFETY: zeInit takes flags only.
    unsafe { call!(library, zeInit(sys::ZE_INIT_FLAG_GPU_ONLY.0)) }
        .map_err(|error| format!("its driver does not start: {error}"))?;
    let drivers = Driver::all(library).map_err(|error| error.to_string())?;
    let devices = drivers
        .iter()
        .filter_map(|driver| driver.devices().ok())
        .map(|devices| devices.len())
        .sum::<usize>();
    if devices == 0 {
        return Err("its driver reports no device".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use tempfile::TempDir;

    use super::*;

    /// A machine with one render node of `vendor`.
    fn machine(vendor: &str, node: bool, drivers: &[&str]) -> (TempDir, Machine) {
        let root = tempfile::tempdir().unwrap();
        let machine = Machine {
            sysfs: root.path().join("sys"),
            nodes: root.path().join("dev"),
            drivers: drivers.iter().map(PathBuf::from).collect(),
        };
        let entry = machine.sysfs.join("class/drm/renderD128/device");
        fs::create_dir_all(&entry).unwrap();
        fs::write(entry.join("vendor"), format!("{vendor}\n")).unwrap();
        fs::create_dir_all(machine.nodes.join("dri")).unwrap();
        if node {
            fs::write(machine.nodes.join("dri/renderD128"), "").unwrap();
        }
        (root, machine)
    }

    #[test]
    fn a_machine_without_an_intel_gpu_has_none() {
        assert_eq!(machine("0x10de", true, &[]).1.find(), Finding::None);
        let empty = Machine {
            sysfs: PathBuf::from("/nowhere"),
            nodes: PathBuf::from("/nowhere"),
            drivers: Vec::new(),
        };
        assert_eq!(empty.find(), Finding::None);
    }

    #[test]
    fn a_node_that_cannot_be_opened_is_named() {
        let (_root, machine) = machine(VENDOR_INTEL, false, &[]);
        let Finding::Unusable(why) = machine.find() else {
            panic!("a GPU whose node is missing cannot be used");
        };
        assert!(
            why.contains("renderD128") && why.contains("render"),
            "{why}"
        );
    }

    #[test]
    fn a_missing_driver_is_named() {
        let (_root, machine) = machine(VENDOR_INTEL, true, &["/nowhere/libze_intel_gpu.so.1"]);
        let Finding::Unusable(why) = machine.find() else {
            panic!("a GPU without a driver cannot be used");
        };
        assert!(why.contains("/nowhere/libze_intel_gpu.so.1"), "{why}");
    }

    #[test]
    fn behind_wsls_node_may_be_anybodys_gpu() {
        let (_root, machine) = machine("0x1414", true, &["/nowhere/libze_intel_gpu.so.1"]);
        fs::write(machine.nodes.join("dxg"), "").unwrap();
        assert_eq!(machine.find(), Finding::None);
    }

    #[test]
    fn a_driver_that_answers_is_usable() {
        let (_root, mut machine) = machine(VENDOR_INTEL, true, &[]);
        machine.drivers = crate::runtime::cpu::candidates();
        let node = machine.nodes.join("dri/renderD128");
        assert_eq!(machine.find(), Finding::Usable(node));
    }

    #[test]
    fn a_driver_that_cannot_be_asked_by_name_gets_the_benefit_of_the_doubt() {
        let (_root, machine) = machine(VENDOR_INTEL, true, &["libc.so.6"]);
        assert!(matches!(machine.find(), Finding::Usable(_)));
    }
}
