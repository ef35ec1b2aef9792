//! Detects a usable Intel GPU without loading the system's Level Zero loader.
//!
//! Once that loader is in the process, its SONAME is in use, and the CPU runtime cannot replace it for a SYCL runtime. The
//! detection therefore looks for device nodes, and probes the driver directly.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use level_zero_sys as sys;

use super::probe::{self, Failure};
use super::probe_cache::ProbeCache;
use crate::device::{Device, Driver};
use crate::shared_library;

/// Intel's PCI vendor number as sysfs writes it.
const VENDOR_INTEL: &str = "0x8086";
/// The device node of WSL.
const WSL_NODE: &str = "dxg";
/// Intel's GPU drivers for Level Zero.
const DRIVERS: [&str; 2] = ["libze_intel_gpu.so.1", "libze_intel_gpu.so"];

/// The result of the detection.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Finding {
    /// There is no Intel GPU, as far as can be seen: what was found.
    None(String),
    /// There is one that cannot be used, for this reason.
    Unusable(String),
    /// The driver of this device node reports a device, or cannot be probed.
    Usable(PathBuf),
}

/// A device node of an Intel GPU, or WSL's node for GPUs of any vendor.
#[derive(Debug)]
pub struct GpuNode {
    /// Its path.
    pub path: PathBuf,
    /// Whether this user can open it for reading and writing.
    pub opened: io::Result<()>,
}

/// The device nodes of a machine whose files are under `root`, which is `/` for this one.
#[must_use]
pub fn gpu_nodes(root: &Path) -> Vec<GpuNode> {
    Machine::under(root).nodes()
}

/// The machine to search.
pub(super) struct Machine {
    /// The path of sysfs.
    pub(super) sysfs: PathBuf,
    /// The folder of the device nodes.
    pub(super) nodes: PathBuf,
    /// The names or paths of the driver's library to try.
    pub(super) drivers: Vec<PathBuf>,
    /// The file of the probe's cache; `None` for the user's cache folder.
    pub(super) probe_cache: Option<PathBuf>,
}

impl Default for Machine {
    fn default() -> Self {
        Self::under(Path::new("/"))
    }
}

impl Machine {
    fn under(root: &Path) -> Self {
        Self {
            sysfs: root.join("sys"),
            nodes: root.join("dev"),
            drivers: DRIVERS.map(PathBuf::from).to_vec(),
            probe_cache: None,
        }
    }

    pub(super) fn find(&self) -> Finding {
        const NONE: &str = "no Intel GPU was found";
        let nodes = self.nodes();
        let opened = nodes.iter().find(|node| node.opened.is_ok());
        let Some(node) = opened.or(nodes.first()) else {
            return Finding::None(NONE.to_owned());
        };
        let paths: Vec<_> = nodes.iter().map(|node| node.path.clone()).collect();
        let usable = match node.refusal() {
            Some(why) => Err(why),
            None => self.probe_driver(&paths),
        };
        match usable {
            Ok(()) => Finding::Usable(node.path.clone()),
            // WSL has one node for GPUs of any vendor; only Intel's driver can report whether there is an Intel GPU.
            Err(why) if node.is_wsls() => Finding::None(format!(
                "{NONE}: WSL's device {} may be a GPU of any vendor, and {why}",
                node.path.display()
            )),
            Err(why) => Finding::Unusable(why),
        }
    }

    /// The render nodes of Intel GPUs, and WSL's node for GPUs of any vendor.
    fn nodes(&self) -> Vec<GpuNode> {
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
        nodes.into_iter().map(GpuNode::open).collect()
    }

    /// Queries the driver's devices in a child process, without a loader. A success, and the termination of the child by the
    /// driver, are cached.
    fn probe_driver(&self, nodes: &[PathBuf]) -> Result<(), String> {
        let cache = match &self.probe_cache {
            Some(file) => ProbeCache::at(file.clone(), nodes),
            None => ProbeCache::of_user(nodes),
        };
        if let Some(result) = cache.as_ref().and_then(ProbeCache::load) {
            if result.is_empty() {
                return Ok(());
            }
            let file = cache.as_ref().map_or(Path::new(""), ProbeCache::file);
            return Err(format!(
                "{result} (cached in {}; remove the file to have the driver probed again)",
                file.display()
            ));
        }
        let probed = probe::in_child(|output| {
            let failure = self.probe_in_this_process(|driver| output.write(driver));
            if let Err(failure) = failure {
                output.write(&failure);
            }
        });
        let report = probed.map_err(|error| format!("its driver cannot be probed: {error}"))?;
        let mut results = report.results.into_iter();
        let driver = results.next().unwrap_or_default();
        let store = |result: &str| {
            if let Some(cache) = &cache {
                cache.store(Path::new(&driver), result);
            }
        };
        let quoted = match report.output {
            output if output.is_empty() => output,
            output => format!(", its last output: {output}"),
        };
        match (report.failure, results.next()) {
            (None, None) => {
                store("");
                Ok(())
            }
            (None, Some(failure)) => Err(format!("{failure}{quoted}")),
            (Some(Failure::TimedOut), _) => {
                Err(format!("its driver {driver} does not answer{quoted}"))
            }
            (Some(Failure::Killed(how)), _) => {
                Err(format!("its driver {driver} could not be tried: {how}"))
            }
            (Some(Failure::Exited(how)), _) => {
                let message = format!("its driver {driver} does not start: {how}{quoted}");
                store(&message);
                Err(message)
            }
        }
    }

    /// Opens the driver, passes its path to `report`, and queries its devices.
    fn probe_in_this_process(&self, mut report: impl FnMut(&str)) -> Result<(), String> {
        let (mut missing, mut broken) = (Vec::new(), Vec::new());
        for driver in &self.drivers {
            // SAFETY: these are names of Level Zero drivers: the usual ones, or those that the loader's variable has.
            match unsafe { sys::load_from(driver) } {
                Ok(library) => {
                    let init = library.zeInit.map(|init| init as *const _);
                    let file = init.and_then(shared_library::path_of);
                    report(&file.as_ref().unwrap_or(driver).display().to_string());
                    return query_devices(library);
                }
                Err(error) => {
                    let reason = error.reasons().join("; ");
                    // The dynamic linker names the missing file, which may be a library that the driver needs.
                    let is_missing =
                        reason.starts_with(&format!("{}: cannot open", driver.display()));
                    if is_missing {
                        missing.push(reason);
                    } else {
                        broken.push(reason);
                    }
                }
            }
        }
        report("");
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

impl GpuNode {
    fn open(path: PathBuf) -> Self {
        let opened = OpenOptions::new().read(true).write(true).open(&path);
        Self {
            path,
            opened: opened.map(drop),
        }
    }

    /// Whether it is WSL's node for GPUs of any vendor.
    fn is_wsls(&self) -> bool {
        self.path.ends_with(WSL_NODE)
    }

    /// Why it cannot be opened, and the remedy.
    fn refusal(&self) -> Option<String> {
        let error = self.opened.as_ref().err()?;
        let state = fs::metadata(&self.path).map_err(|error| error.kind());
        let is_folder_closed = matches!(state, Err(io::ErrorKind::PermissionDenied));
        let is_wsls = self.is_wsls();
        let node = self.path.display();
        Some(match error.raw_os_error() {
            Some(libc::ENOENT) => format!(
                "{node} does not exist: pass it to the container (--device /dev/dri), or, outside of a container, check why the \
                 kernel's driver made no device node"
            ),
            Some(libc::EACCES) if is_folder_closed => {
                format!(
                    "{node} cannot be opened: a folder on its path denies the user search permission (chmod a+x)"
                )
            }
            Some(libc::EACCES) => format!(
                "{node} cannot be opened for reading and writing: add the user to the group that owns it (usually render)"
            ),
            Some(libc::EPERM) => format!(
                "{node} cannot be opened: the container's device rules forbid it (--device /dev/dri allows it)"
            ),
            _ if is_wsls => format!(
                "{node} cannot be opened: {error}; update WSL (wsl --update) and the GPU's driver on Windows"
            ),
            _ => format!("{node} cannot be opened: {error}"),
        })
    }
}

/// Succeeds when the driver reports a GPU. A driver that does not export the API by name can be queried through the loader
/// only, and is assumed to have one.
fn query_devices(library: &'static sys::Library) -> Result<(), String> {
    if library.zeInit.is_none() || library.zeDriverGet.is_none() || library.zeDeviceGet.is_none() {
        return Ok(());
    }
    // SAFETY: zeInit takes flags only.
    unsafe { call!(library, zeInit(sys::ZE_INIT_FLAG_GPU_ONLY.0)) }
        .map_err(|error| format!("its driver does not start: {error}"))?;
    let drivers = Driver::all(library).map_err(|error| error.to_string())?;
    let mut devices = drivers
        .iter()
        .filter_map(|driver| driver.devices().ok())
        .flatten();
    if !devices.any(Device::is_gpu) {
        return Err("its driver reports no GPU".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests;
