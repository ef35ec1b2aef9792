//! The memory of a process on Linux, by the files of `/proc` and of control groups.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::{Resource, getrlimit};

use super::amount::{Memory, UNLIMITED};
use super::bound::Bound;

impl Memory {
    /// The memory of this process. Reads files each time.
    #[must_use]
    pub fn now() -> Self {
        Self::below(Path::new("/"))
    }

    /// The memory of a process whose system has its files below `root`: the machine's, or less where a control group of the
    /// process or a parent of it has less. Where nothing is reported, it is unlimited.
    #[must_use]
    pub fn below(root: &Path) -> Self {
        let machine = Machine::below(root);
        machine.memory.at_most(machine.groups(root))
    }

    /// The lesser of each.
    fn at_most(self, other: Self) -> Self {
        Self {
            total: self.total.min(other.total),
            with_swap: self.with_swap.min(other.with_swap),
            available: self.available.min(other.available),
        }
    }
}

/// The limit in bytes that control groups set for memory and swap space, if that is less than the machine has. The files are those
/// below `root`.
#[must_use]
pub fn group_limit(root: &Path) -> Option<u64> {
    let machine = Machine::below(root);
    let groups = machine.groups(root).with_swap;
    (groups < machine.memory.with_swap).then_some(groups)
}

/// Memory and swap space of the machine.
struct Machine {
    memory: Memory,
    swap: u64,
    free_swap: u64,
}

impl Machine {
    fn below(root: &Path) -> Self {
        let text = fs::read_to_string(root.join("proc/meminfo")).unwrap_or_default();
        let bytes = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
            kibibytes.checked_mul(1024)
        };
        let (swap, free_swap) = (bytes("SwapTotal:"), bytes("SwapFree:"));
        let (swap, free_swap) = (swap.unwrap_or(0), free_swap.unwrap_or(0));
        let total = bytes("MemTotal:").unwrap_or(u64::MAX);
        let available = bytes("MemAvailable:").unwrap_or(u64::MAX);
        Self {
            memory: Memory {
                total,
                with_swap: total.saturating_add(swap),
                available: available.saturating_add(free_swap),
            },
            swap,
            free_swap,
        }
    }

    /// What the control groups allow, from the process's own up to the root, in either version's hierarchy.
    fn groups(&self, root: &Path) -> Memory {
        let own = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
        let mounted = root.join("sys/fs/cgroup");
        own.lines()
            .flat_map(|line| hierarchy(&mounted, line))
            .filter_map(|group| group.memory(self))
            .fold(UNLIMITED, Memory::at_most)
    }
}

/// The version of control groups that a hierarchy has.
#[derive(Clone, Copy)]
enum Version {
    First,
    Second,
}

/// A control group that may limit the process's memory.
struct Group {
    folder: PathBuf,
    version: Version,
}

/// The groups that a line of `/proc/self/cgroup` names, below the folder where they are mounted.
fn hierarchy(mounted: &Path, line: &str) -> Vec<Group> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else {
        return Vec::new();
    };
    let (root, version) = if controllers.is_empty() {
        (mounted.to_owned(), Version::Second)
    } else if controllers.split(',').any(|name| name == "memory") {
        (mounted.join("memory"), Version::First)
    } else {
        return Vec::new();
    };
    let own = Path::new(path.trim_start_matches('/'));
    own.ancestors()
        .map(|group| Group {
            folder: root.join(group),
            version,
        })
        .collect()
}

impl Group {
    /// What it allows; `None` if it has no limit.
    ///
    /// Source: cgroups(7); the kernel's `cgroup-v2.rst` and `cgroup-v1/memory.rst`.
    fn memory(&self, machine: &Machine) -> Option<Memory> {
        match self.version {
            Version::Second => {
                let cache = self.statistic("inactive_file ");
                let total = self.number("memory.max")?;
                let free = self.free(total, "memory.current", cache);
                // The limit of the group's part of the swap space.
                let most = self.number("memory.swap.max").unwrap_or(u64::MAX);
                let swap = self.free(most, "memory.swap.current", 0);
                Some(Memory {
                    total,
                    with_swap: total.saturating_add(most.min(machine.swap)),
                    available: free.saturating_add(swap.min(machine.free_swap)),
                })
            }
            Version::First => {
                let cache = self.statistic("total_inactive_file ");
                let total = self.number("memory.limit_in_bytes")?;
                let free = self.free(total, "memory.usage_in_bytes", cache);
                // The limit of the sum of memory and swap space.
                let both = self.number("memory.memsw.limit_in_bytes");
                let both = both.unwrap_or(u64::MAX);
                let of_both = self.free(both, "memory.memsw.usage_in_bytes", cache);
                Some(Memory {
                    total,
                    with_swap: both.min(total.saturating_add(machine.swap)),
                    available: of_both.min(free.saturating_add(machine.free_swap)),
                })
            }
        }
    }

    /// What is left of a limit. The cache is a part of the usage that the system gives up.
    fn free(&self, limit: u64, usage: &str, cache: u64) -> u64 {
        let used = self.number(usage).unwrap_or(0);
        limit.saturating_sub(used.saturating_sub(cache))
    }

    /// Version 2 writes "max" for no limit, which is no number; version 1 a number beyond any machine.
    fn number(&self, file: &str) -> Option<u64> {
        let text = fs::read_to_string(self.folder.join(file)).ok()?;
        let number = text.trim().parse().ok();
        number.filter(|number| *number < 1 << 60)
    }

    /// A figure of the group and those below it.
    fn statistic(&self, name: &str) -> u64 {
        let text = fs::read_to_string(self.folder.join("memory.stat")).unwrap_or_default();
        let found = text.lines().find_map(|line| line.strip_prefix(name));
        found.and_then(|number| number.parse().ok()).unwrap_or(0)
    }
}

/// The limits that the shell's `ulimit` sets, with the position of what they limit in `statm`.
///
/// Source: getrlimit(2), `proc_pid_statm(5)`.
pub fn resources() -> impl Iterator<Item = Bound> {
    let sizes = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    [
        (
            Resource::As,
            0,
            "RLIMIT_AS (ulimit -v) limits the addresses of this process",
        ),
        (
            Resource::Data,
            5,
            "RLIMIT_DATA (ulimit -d) limits the private memory of this process",
        ),
    ]
    .into_iter()
    .filter_map(move |(resource, position, what)| {
        let limit = getrlimit(resource).current?;
        let pages: u64 = sizes.split(' ').nth(position)?.parse().ok()?;
        let used = pages.saturating_mul(rustix::param::page_size() as u64);
        let free = limit.saturating_sub(used);
        Some(Bound {
            what,
            limit,
            free,
            is_set: true,
        })
    })
}
