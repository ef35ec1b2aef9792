//! Whether this machine has an Intel GPU that works, found out without loading the system's Level Zero loader.
//!
//! Once that loader is in the process its SONAME is taken, and the CPU runtime cannot step in for a SYCL runtime any
//! more. So the device nodes are looked at, and the driver is asked directly.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use level_zero_sys as sys;

use super::place;
use super::probe::{self, Death};
use super::remembered::Remembered;
use crate::device::Driver;

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
    /// Where the driver's answer is remembered; `None` for the user's cache folder.
    pub(super) remembered: Option<PathBuf>,
}

impl Default for Machine {
    fn default() -> Self {
        Self {
            sysfs: PathBuf::from("/sys"),
            nodes: PathBuf::from("/dev"),
            drivers: DRIVERS.map(PathBuf::from).to_vec(),
            remembered: None,
        }
    }
}

impl Machine {
    pub(super) fn find(&self) -> Finding {
        let nodes = self.gpu_nodes();
        let Some(first) = nodes.first() else {
            return Finding::None;
        };
        let opened: Vec<io::Result<&PathBuf>> = nodes.iter().map(open).collect();
        let node = match (opened.iter().flatten().next(), opened.first()) {
            (Some(node), _) => *node,
            (None, Some(Err(error))) => return Finding::Unusable(not_opened(first, error)),
            (None, _) => return Finding::None,
        };
        match self.ask_driver(&nodes) {
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

    /// Asks the driver for a device, without a loader, in a process that the driver may end; not twice, if it answered
    /// that it has one or ended the process.
    fn ask_driver(&self, nodes: &[PathBuf]) -> Result<(), String> {
        let remembered = match &self.remembered {
            Some(file) => Remembered::at(file.clone(), nodes),
            None => Remembered::of_user(nodes),
        };
        if let Some(answer) = remembered.as_ref().and_then(Remembered::answer) {
            return outcome(answer, remembered.as_ref());
        }
        let asked = probe::in_child(|answers| {
            let refusal = self.ask_here(|driver| answers.give(driver));
            if let Err(refusal) = refusal {
                answers.give(&refusal);
            }
        });
        let report = asked.map_err(|error| format!("its driver cannot be asked: {error}"))?;
        let mut answers = report.answers.into_iter();
        let driver = answers.next().unwrap_or_default();
        let keep = |answer: &str| {
            if let Some(remembered) = &remembered {
                remembered.keep(Path::new(&driver), answer);
            }
        };
        let words = match report.words {
            words if words.is_empty() => words,
            words => format!(", its last words: {words}"),
        };
        match (report.died, answers.next()) {
            (None, None) => {
                keep("");
                Ok(())
            }
            (None, Some(refusal)) => Err(format!("{refusal}{words}")),
            (Some(Death::Hung), _) => Err(format!("its driver {driver} does not answer{words}")),
            (Some(Death::Ended(how)), _) => {
                let told = format!("its driver {driver} does not start: {how}{words}");
                keep(&told);
                Err(told)
            }
        }
    }

    /// Opens the driver, tells its file, and asks it for a device.
    fn ask_here(&self, mut tell: impl FnMut(&str)) -> Result<(), String> {
        let (mut missing, mut broken) = (Vec::new(), Vec::new());
        for driver in &self.drivers {
            match sys::load_from(driver) {
                Ok(library) => {
                    let init = library.zeInit.map(|init| init as *const ());
                    let file = init.and_then(place::file_of);
                    tell(&file.as_ref().unwrap_or(driver).display().to_string());
                    return ask(library);
                }
                Err(error) => {
                    let words = error.words().join("; ");
                    // The dynamic linker names the file that it has not found, which may be one that the driver needs.
                    let is_missing =
                        words.starts_with(&format!("{}: cannot open", driver.display()));
                    if is_missing {
                        missing.push(words);
                    } else {
                        broken.push(words);
                    }
                }
            }
        }
        tell("");
        Err(if broken.is_empty() {
            format!(
                "its Level Zero driver is not installed (libze-intel-gpu1 or intel-level-zero-gpu): {}",
                missing.join("; ")
            )
        } else {
            format!(
                "its Level Zero driver cannot be loaded: {}",
                broken.join("; ")
            )
        })
    }
}

fn open(node: &PathBuf) -> io::Result<&PathBuf> {
    OpenOptions::new().read(true).write(true).open(node)?;
    Ok(node)
}

/// Why a node cannot be used, and what to do.
fn not_opened(node: &Path, error: &io::Error) -> String {
    let node = node.display();
    match error.raw_os_error() {
        Some(libc::ENOENT) => format!(
            "{node} does not exist: let the container have it (--device /dev/dri), or, where there is none, look why the \
             kernel's driver made no device node"
        ),
        Some(libc::EACCES) => format!(
            "{node} cannot be opened for reading and writing: let the user join the group that owns it (render, usually)"
        ),
        Some(libc::EPERM) => format!(
            "{node} cannot be opened: the container's rules for devices forbid it (--device /dev/dri allows it)"
        ),
        _ => format!("{node} cannot be opened: {error}"),
    }
}

/// What an answer of before means now.
fn outcome(answer: String, remembered: Option<&Remembered>) -> Result<(), String> {
    if answer.is_empty() {
        return Ok(());
    }
    let file = remembered.map_or(Path::new(""), Remembered::file);
    Err(format!(
        "{answer} (remembered in {}; remove the file to have the driver asked again)",
        file.display()
    ))
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

    use std::process::Command;

    use tempfile::TempDir;

    use super::*;

    /// A machine with one render node of `vendor`.
    fn machine(vendor: &str, node: bool, drivers: &[&str]) -> (TempDir, Machine) {
        let root = tempfile::tempdir().unwrap();
        let machine = Machine {
            sysfs: root.path().join("sys"),
            nodes: root.path().join("dev"),
            drivers: drivers.iter().map(PathBuf::from).collect(),
            remembered: Some(root.path().join("remembered")),
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
            remembered: None,
        };
        assert_eq!(empty.find(), Finding::None);
    }

    /// Why the GPU of a machine cannot be used.
    fn why(machine: &Machine) -> String {
        match machine.find() {
            Finding::Unusable(why) => why,
            found => panic!("{found:?}"),
        }
    }

    #[test]
    fn a_node_that_is_not_there_is_for_the_container() {
        let (_root, machine) = machine(VENDOR_INTEL, false, &[]);
        let why = why(&machine);
        assert!(why.contains("renderD128 does not exist"), "{why}");
        assert!(
            why.contains("--device /dev/dri") && !why.contains("group"),
            "{why}"
        );
    }

    #[test]
    fn a_node_that_cannot_be_opened_is_named_with_what_to_do() {
        let node = Path::new("/dev/dri/renderD128");
        for (errno, part) in [
            (libc::EACCES, "render, usually"),
            (libc::EPERM, "container"),
            (libc::EIO, "Input/output error"),
        ] {
            let why = not_opened(node, &io::Error::from_raw_os_error(errno));
            assert!(why.contains("renderD128") && why.contains(part), "{why}");
        }
    }

    #[test]
    fn a_missing_driver_is_named() {
        let (_root, machine) = machine(VENDOR_INTEL, true, &["/nowhere/libze_intel_gpu.so.1"]);
        let why = why(&machine);
        assert!(why.contains("not installed"), "{why}");
        assert!(why.contains("/nowhere/libze_intel_gpu.so.1"), "{why}");
    }

    /// A shared library of that C source, in a folder of its own, linked to `needed`.
    fn library(root: &TempDir, name: &str, source: &str, needed: &[&Path]) -> PathBuf {
        let (file, code) = (root.path().join(name), root.path().join("source.c"));
        fs::write(&code, source).unwrap();
        let compiled = Command::new("cc")
            .args(["-shared", "-fPIC", "-Wl,--no-as-needed", "-o"])
            .arg(&file)
            .arg(&code)
            .args(needed)
            .status();
        assert!(compiled.unwrap().success());
        file
    }

    #[test]
    fn a_driver_that_lacks_a_library_is_not_called_missing() {
        let (root, mut machine) = machine(VENDOR_INTEL, true, &[]);
        let needed = library(&root, "libneeded.so.1", "", &[]);
        machine.drivers = vec![library(&root, "driver.so", "", &[&needed])];
        fs::remove_file(&needed).unwrap();
        let why = why(&machine);
        assert!(why.contains("cannot be loaded"), "{why}");
        assert!(
            why.contains("libneeded.so.1: cannot open shared object file"),
            "{why}"
        );
    }

    /// A driver that writes down that it is asked, and then does as it is told.
    fn driver(root: &TempDir, then: &str) -> (PathBuf, PathBuf) {
        let asked = root.path().join("asked");
        let source = format!(
            "#include <stdio.h>\n#include <stdlib.h>\n#include <signal.h>\n\
             int zeInit(int flags) {{\n\
             FILE *file = fopen(\"{}\", \"a\"); fputs(\"x\", file); fclose(file);\n\
             fputs(\"Abort was called at 42\", stderr); {then} }}\n\
             int zeDriverGet(int *count, void *drivers) {{ *count = 0; return 0; }}\n\
             int zeDeviceGet(void *driver, int *count, void *devices) {{ return 0; }}\n",
            asked.display()
        );
        (library(root, "driver.so", &source, &[]), asked)
    }

    #[test]
    fn a_driver_that_aborts_is_survived_and_asked_once() {
        let (root, mut machine) = machine(VENDOR_INTEL, true, &[]);
        let (driver, asked) = driver(&root, "abort();");
        machine.drivers = vec![driver.clone()];
        let first = why(&machine);
        for part in ["does not start", "signal 6", "Abort was called at 42"] {
            assert!(first.contains(part), "{part:?} in {first}");
        }
        assert!(first.contains(&driver.display().to_string()), "{first}");
        let remembered = machine.remembered.clone().unwrap();
        let second = why(&machine);
        assert!(second.starts_with(&first), "{second}");
        assert!(
            second.contains(&remembered.display().to_string()),
            "{second}"
        );
        assert_eq!(fs::read_to_string(&asked).unwrap(), "x");
        fs::remove_file(remembered).unwrap();
        assert_eq!(why(&machine), first);
        assert_eq!(fs::read_to_string(&asked).unwrap(), "xx");
    }

    #[test]
    fn a_driver_that_crashes_is_survived() {
        let (root, mut machine) = machine(VENDOR_INTEL, true, &[]);
        machine.drivers = vec![driver(&root, "raise(SIGSEGV); return 0;").0];
        let why = why(&machine);
        assert!(why.contains("signal 11"), "{why}");
    }

    #[test]
    fn a_refusal_is_not_remembered() {
        let (root, mut machine) = machine(VENDOR_INTEL, true, &[]);
        let (driver, asked) = driver(&root, "return 0;");
        machine.drivers = vec![driver];
        for times in ["x", "xx"] {
            let why = why(&machine);
            assert!(why.contains("reports no device"), "{why}");
            assert!(why.contains("Abort was called at 42"), "{why}");
            assert_eq!(fs::read_to_string(&asked).unwrap(), times);
        }
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
