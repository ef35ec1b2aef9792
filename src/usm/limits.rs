//! The maximum size of an allocation. Drivers do not check it: with relaxed limits, Intel's driver aborts the process for
//! 2^46 bytes.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use super::UsmKind;
use crate::device::Device;
use crate::error::{Error, Result};

/// Returns an error for sizes beyond the memory of the machine or the device.
///
/// # Errors
/// [`Error::TooLarge`].
pub(crate) fn check(device: &Device, kind: UsmKind, size: usize) -> Result<()> {
    if kind != UsmKind::Host {
        at_most(size, device.memory_size(), "memory of the device")?;
    }
    if kind != UsmKind::Device {
        let of = "memory and swap space that this process may use";
        at_most(size, host_limit(size) as u64, of)?;
    }
    Ok(())
}

fn at_most(size: usize, limit: u64, of: &'static str) -> Result<()> {
    if size as u64 > limit {
        return Err(Error::TooLarge { size, limit, of });
    }
    Ok(())
}

/// The host memory that is available to this process. It is read again only for sizes above the last value.
fn host_limit(size: usize) -> usize {
    static LAST: AtomicUsize = AtomicUsize::new(0);
    let last = LAST.load(Ordering::Relaxed);
    if size <= last {
        return last;
    }
    let limit = Host::under(Path::new("/")).limit();
    LAST.store(limit, Ordering::Relaxed);
    limit
}

/// The memory and swap space in bytes that this process's control groups allow, unless the machine has less. The files are
/// those of the machine under `root`, which is `/` for this one.
#[must_use]
pub fn group_limit(root: &Path) -> Option<usize> {
    Host::under(root).groups_limit()
}

/// The folders in which the system reports its memory.
struct Host {
    proc: PathBuf,
    groups: PathBuf,
}

impl Host {
    fn under(root: &Path) -> Self {
        Self {
            proc: root.join("proc"),
            groups: root.join("sys/fs/cgroup"),
        }
    }

    /// Physical memory and swap space, or the limit of the control groups if that is less; [`usize::MAX`] where neither is
    /// reported.
    fn limit(&self) -> usize {
        let (memory, swap) = self.machine();
        let all = memory.saturating_add(swap);
        self.groups_limit().unwrap_or(all)
    }

    /// The lowest limit of the control groups, if it is below the memory and swap space of the machine.
    fn groups_limit(&self) -> Option<usize> {
        let (memory, swap) = self.machine();
        let own = fs::read_to_string(self.proc.join("self/cgroup")).unwrap_or_default();
        own.lines()
            .filter_map(|line| self.group_limit(line, swap))
            .min()
            .filter(|&limit| limit < memory.saturating_add(swap))
    }

    fn machine(&self) -> (usize, usize) {
        let text = fs::read_to_string(self.proc.join("meminfo")).unwrap_or_default();
        let kibibytes = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next()?.parse::<usize>().ok()
        };
        let bytes = |name| kibibytes(name).map(|size| size.saturating_mul(1024));
        (
            bytes("MemTotal:").unwrap_or(usize::MAX),
            bytes("SwapTotal:").unwrap_or(0),
        )
    }

    /// The lowest limit of the group in a line of `/proc/self/cgroup` and of its parent groups.
    ///
    /// Source: cgroups(7); the kernel's `cgroup-v2.rst` and `cgroup-v1/memory.rst`.
    fn group_limit(&self, line: &str, swap: usize) -> Option<usize> {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        let (root, file, swap_file) = if controllers.is_empty() {
            (self.groups.to_owned(), "memory.max", "memory.swap.max")
        } else if controllers.split(',').any(|name| name == "memory") {
            // In version 1, the second limit is on the sum of memory and swap space.
            (
                self.groups.join("memory"),
                "memory.limit_in_bytes",
                "memory.memsw.limit_in_bytes",
            )
        } else {
            return None;
        };
        let read = |group: &Path, file: &str| {
            let text = fs::read_to_string(group.join(file)).ok()?;
            text.trim().parse::<usize>().ok()
        };
        let limit_of = |group: &Path| {
            let memory = read(group, file)?;
            let other = read(group, swap_file);
            Some(match other {
                Some(both) if swap_file.contains("memsw") => both.min(memory.saturating_add(swap)),
                Some(own_swap) => memory.saturating_add(own_swap.min(swap)),
                None => memory.saturating_add(swap),
            })
        };
        let own = root.join(path.trim_start_matches('/'));
        own.ancestors()
            .take_while(|group| group.starts_with(&root))
            .filter_map(limit_of)
            .min()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use tempfile::TempDir;

    use super::*;

    /// The limit on a machine with 8 GiB of memory and 2 GiB of swap space, with these files of groups; `own` is the
    /// process's `cgroup` file.
    fn machine(own: &str, files: &[(&str, &str)]) -> usize {
        let root: TempDir = tempfile::tempdir().unwrap();
        let host = Host::under(root.path());
        fs::create_dir_all(host.proc.join("self")).unwrap();
        let told = "MemTotal:  8388608 kB\nMemFree: 1 kB\nSwapTotal:  2097152 kB\n";
        fs::write(host.proc.join("meminfo"), told).unwrap();
        fs::write(host.proc.join("self/cgroup"), own).unwrap();
        for (file, content) in files {
            let file = host.groups.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, content).unwrap();
        }
        let (limit, of_groups) = (host.limit(), group_limit(root.path()));
        assert_eq!(of_groups, Some(limit).filter(|&limit| limit < 10 * GIB));
        limit
    }

    const GIB: usize = 1 << 30;

    #[test]
    fn a_size_up_to_the_limit_is_allowed() {
        assert!(at_most(4096, 4096, "memory").is_ok());
        let error = at_most(4097, 4096, "memory").unwrap_err().to_string();
        assert!(
            error.contains("4097 bytes are more than the memory, 4096 bytes"),
            "{error}"
        );
    }

    #[test]
    fn the_limit_without_groups_is_memory_and_swap() {
        assert_eq!(machine("", &[]), 10 * GIB);
        assert_eq!(machine("0::/a\n", &[("a/memory.max", "max\n")]), 10 * GIB);
        let nothing = Host::under(Path::new("/nowhere"));
        assert_eq!(
            (nothing.limit(), nothing.groups_limit()),
            (usize::MAX, None)
        );
    }

    #[test]
    fn the_least_limit_of_the_groups_applies() {
        let gib = |count: usize| format!("{}\n", count * GIB);
        assert_eq!(machine("0::/a/b\n", &[("a/memory.max", &gib(3))]), 5 * GIB);
        let files = [
            ("memory.max", gib(2)),
            ("memory.swap.max", "0\n".to_owned()),
            ("a/memory.max", gib(4)),
        ];
        let files = files.each_ref().map(|(file, text)| (*file, text.as_str()));
        assert_eq!(machine("0::/a\n", &files), 2 * GIB);
    }

    #[test]
    fn groups_of_version_1_apply() {
        let gib = |count: usize| format!("{}\n", count * GIB);
        let own = "5:cpu:/x\n4:memory:/a\n0::/\n";
        let limit = ("memory/a/memory.limit_in_bytes", gib(4));
        let both = ("memory/a/memory.memsw.limit_in_bytes", gib(5));
        assert_eq!(machine(own, &[(limit.0, &limit.1)]), 6 * GIB);
        let files = [(limit.0, limit.1.as_str()), (both.0, both.1.as_str())];
        assert_eq!(machine(own, &files), 5 * GIB);
        // The kernel's default for the sum is no limit.
        let both = (
            "memory/a/memory.memsw.limit_in_bytes",
            "9223372036854771712\n",
        );
        assert_eq!(machine(own, &[files[0], both]), 6 * GIB);
    }
}
