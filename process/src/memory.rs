//! The memory that this process may use: that of the machine, of its control groups, and of its addresses.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// What a process may use, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// The physical memory.
    pub total: u64,
    /// The same with swap space.
    pub with_swap: u64,
    /// What could be used right now: free memory, file cache that the system would give up, free swap space.
    pub available: u64,
}

/// Nothing limits it.
const UNLIMITED: Memory = Memory {
    total: u64::MAX,
    with_swap: u64::MAX,
    available: u64::MAX,
};

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

/// A limit of this process that is less than what the machine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// What limits what, in words.
    pub what: &'static str,
    /// The limit in bytes.
    pub limit: u64,
    /// What is free of it.
    pub free: u64,
}

impl Bound {
    /// The limits of this process.
    #[must_use]
    pub fn all() -> Box<[Self]> {
        let root = Path::new("/");
        let groups = group_limit(root).map(|limit| Self {
            what: "control groups limit the memory of this process",
            limit,
            free: Memory::below(root).available,
        });
        groups.into_iter().chain(addresses()).collect()
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, limit, free } = self;
        write!(
            formatter,
            "{what} to {limit} bytes, of which {free} are free"
        )
    }
}

#[cfg(not(target_os = "linux"))]
fn addresses() -> Option<Bound> {
    None
}

/// Source: getrlimit(2), `proc_pid_statm(5)`.
#[cfg(target_os = "linux")]
fn addresses() -> Option<Bound> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::As).current?;
    let sizes = fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = sizes.split(' ').next()?.parse().ok()?;
    let used = pages.saturating_mul(rustix::param::page_size() as u64);
    Some(Bound {
        what: "RLIMIT_AS (ulimit -v) limits the addresses of this process",
        limit,
        free: limit.saturating_sub(used),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use tempfile::TempDir;

    use super::*;

    const MIB: u64 = 1 << 20;
    const GIB: u64 = 1 << 30;

    /// The root of a machine with 8 GiB of memory, of which 4 are available, and 2 GiB of swap space, of which 1 is free.
    struct Root(TempDir);

    impl Root {
        /// With the process's file of control groups.
        fn new(groups: &str) -> Self {
            let root = Self(tempfile::tempdir().unwrap());
            root.write("proc/self/cgroup", groups);
            let told = "MemTotal:  8388608 kB\nMemFree: 1 kB\nMemAvailable: 4194304 kB\n\
                SwapTotal:  2097152 kB\nSwapFree:  1048576 kB\n";
            root.write("proc/meminfo", told);
            root
        }

        fn write(&self, file: &str, text: &str) {
            let path = self.0.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        /// Writes numbers of a group.
        fn group(&self, folder: &str, numbers: &[(&str, u64)]) {
            for (name, number) in numbers {
                let file = format!("sys/fs/cgroup/{folder}/{name}");
                self.write(&file, &format!("{number}\n"));
            }
        }

        /// Memory, memory with swap space, and what is available.
        fn memory(&self) -> [u64; 3] {
            let memory = Memory::below(self.0.path());
            let limit = group_limit(self.0.path());
            assert_eq!(limit, Some(memory.with_swap).filter(|it| *it < 10 * GIB));
            [memory.total, memory.with_swap, memory.available]
        }
    }

    #[test]
    fn without_groups_it_is_that_of_the_machine() {
        let root = Root::new("0::/a\n");
        assert_eq!(root.memory(), [8 * GIB, 10 * GIB, 5 * GIB]);
        root.write("sys/fs/cgroup/a/memory.max", "max\n");
        assert_eq!(root.memory(), [8 * GIB, 10 * GIB, 5 * GIB]);
        assert_eq!(Memory::below(Path::new("/nowhere")), UNLIMITED);
    }

    #[test]
    fn the_least_of_nested_groups_counts() {
        let root = Root::new("0::/a/b/c\n");
        root.group("a", &[("memory.max", 3 * GIB), ("memory.current", GIB)]);
        root.group("a/b", &[("memory.max", 4 * GIB)]);
        root.write("sys/fs/cgroup/a/b/c/memory.max", "max\n");
        assert_eq!(root.memory(), [3 * GIB, 5 * GIB, 3 * GIB]);
        // Its part of the swap space.
        root.group(
            "a",
            &[
                ("memory.swap.max", GIB / 2),
                ("memory.swap.current", GIB / 4),
            ],
        );
        assert_eq!(root.memory(), [3 * GIB, 7 * GIB / 2, 9 * GIB / 4]);
        root.group(
            "a/b/c",
            &[("memory.max", 120 * MIB), ("memory.current", 100 * MIB)],
        );
        root.group("a/b/c", &[("memory.swap.max", 0)]);
        root.write(
            "sys/fs/cgroup/a/b/c/memory.stat",
            "anon 1\ninactive_file 5242880\n",
        );
        assert_eq!(root.memory(), [120 * MIB, 120 * MIB, 25 * MIB]);
        root.group("a/b/c", &[("memory.current", 130 * MIB)]);
        assert_eq!(root.memory()[2], 0);
    }

    #[test]
    fn groups_of_version_1_limit_the_sum_of_memory_and_swap_space() {
        let root = Root::new("5:cpu:/x\n4:memory:/a\n0::/\n");
        let limit = ("memory.limit_in_bytes", 4 * GIB);
        root.group("memory/a", &[limit, ("memory.usage_in_bytes", GIB)]);
        assert_eq!(root.memory(), [4 * GIB, 6 * GIB, 4 * GIB]);
        root.group("memory/a", &[("memory.memsw.limit_in_bytes", 5 * GIB)]);
        root.group("memory/a", &[("memory.memsw.usage_in_bytes", 2 * GIB)]);
        assert_eq!(root.memory(), [4 * GIB, 5 * GIB, 3 * GIB]);
        root.write(
            "sys/fs/cgroup/memory/a/memory.stat",
            "total_inactive_file 1073741824\n",
        );
        assert_eq!(root.memory(), [4 * GIB, 5 * GIB, 4 * GIB]);
        // The kernel's default is no limit.
        root.group(
            "memory/a",
            &[("memory.memsw.limit_in_bytes", i64::MAX as u64 - 4095)],
        );
        root.group(
            "memory/a",
            &[("memory.limit_in_bytes", i64::MAX as u64 - 4095)],
        );
        assert_eq!(root.memory(), [8 * GIB, 10 * GIB, 5 * GIB]);
    }

    #[test]
    fn a_container_sees_its_group_as_the_root() {
        let root = Root::new("4:memory:/docker/1234\n0::/x\n");
        root.group("memory", &[("memory.limit_in_bytes", GIB)]);
        assert_eq!(root.memory()[0], GIB);
    }

    #[test]
    #[cfg(target_os = "linux")]
    #[cfg_attr(miri, ignore = "Miri does not fork")]
    fn a_limit_of_addresses_is_told_with_what_is_free() {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

        crate::testing::in_child(|| {
            let is_of_addresses = |bound: &Bound| bound.what.starts_with("RLIMIT_AS");
            assert!(!Bound::all().iter().any(is_of_addresses));
            let limit = Rlimit {
                current: Some(1 << 40),
                ..getrlimit(Resource::As)
            };
            setrlimit(Resource::As, limit).unwrap();
            let bound = Bound::all().into_iter().find(is_of_addresses).unwrap();
            let Bound { limit, free, .. } = bound;
            assert_eq!(limit, 1 << 40);
            assert!((1 << 39..1 << 40).contains(&free), "{free}");
            assert!(bound.to_string().contains("ulimit -v"));
        });
    }
}
