//! The memory that this process may use, limited by the machine and by control groups.

use std::fs;
use std::path::{Path, PathBuf};

use zeusm_process::Lazy;

/// The most memory that the process can have, in bytes: the machine's, or its control group's limit if that is lower.
pub fn total() -> u64 {
    static TOTAL: Lazy<u64> = Lazy::new();
    *TOTAL.get_or_make(|| system().total())
}

/// Bytes that could be used right now, swapping included. Reads files each time.
pub fn available() -> u64 {
    system().available()
}

/// The largest single allocation without relaxed limits: half of the memory.
pub fn max_allocation_size() -> u64 {
    total() / 2
}

/// The files in which the system reports its memory.
struct System {
    meminfo: PathBuf,
    groups: Vec<Group>,
}

/// This machine, with the process's control groups, from its own up to the root, in either version's hierarchy.
fn system() -> &'static System {
    static SYSTEM: Lazy<System> = Lazy::new();
    SYSTEM.get_or_make(|| System::below(Path::new("/")))
}

impl System {
    fn below(root: &Path) -> Self {
        let own = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
        let groups = root.join("sys/fs/cgroup");
        Self {
            meminfo: root.join("proc/meminfo"),
            groups: own
                .lines()
                .flat_map(|line| hierarchy(&groups, line))
                .collect(),
        }
    }

    fn total(&self) -> u64 {
        let limits = self.groups.iter().filter_map(Group::limit);
        limits.fold(self.meminfo("MemTotal:").unwrap_or(u64::MAX), u64::min)
    }

    fn available(&self) -> u64 {
        let machine = self.meminfo("MemAvailable:").unwrap_or(u64::MAX);
        let swap = self.meminfo("SwapFree:").unwrap_or(0);
        let rooms = self.groups.iter().filter_map(Group::room);
        rooms.fold(machine.saturating_add(swap), u64::min)
    }

    fn meminfo(&self, field: &str) -> Option<u64> {
        let text = fs::read_to_string(&self.meminfo).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix(field))?;
        let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        kibibytes.checked_mul(1024)
    }
}

/// The file names of a version of control groups.
struct Names {
    limit: &'static str,
    usage: &'static str,
    /// The part of the usage that is reclaimable file cache, including groups below.
    cache: &'static str,
}

const FIRST: Names = Names {
    limit: "memory.limit_in_bytes",
    usage: "memory.usage_in_bytes",
    cache: "total_inactive_file ",
};

const SECOND: Names = Names {
    limit: "memory.max",
    usage: "memory.current",
    cache: "inactive_file ",
};

/// A control group that limits the process's memory.
struct Group {
    folder: PathBuf,
    names: &'static Names,
}

impl Group {
    fn limit(&self) -> Option<u64> {
        // Version 2 writes "max" for none, which is no number; version 1 a number beyond any machine.
        number(&self.folder.join(self.names.limit)).filter(|limit| *limit < 1 << 60)
    }

    fn room(&self) -> Option<u64> {
        let limit = self.limit()?;
        let usage = number(&self.folder.join(self.names.usage))?;
        let stat = fs::read_to_string(self.folder.join("memory.stat")).unwrap_or_default();
        let field = |line: &str| line.strip_prefix(self.names.cache)?.parse::<u64>().ok();
        let cache = stat.lines().find_map(field).unwrap_or(0);
        Some(limit.saturating_sub(usage.saturating_sub(cache)))
    }
}

/// The groups that a line of `/proc/self/cgroup` names, below the folder where they are mounted.
fn hierarchy(mounted: &Path, line: &str) -> Vec<Group> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else {
        return Vec::new();
    };
    let (root, names) = if controllers.is_empty() {
        (mounted.to_owned(), &SECOND)
    } else if controllers
        .split(',')
        .any(|controller| controller == "memory")
    {
        (mounted.join("memory"), &FIRST)
    } else {
        return Vec::new();
    };
    let own = Path::new(path.trim_start_matches('/'));
    own.ancestors()
        .map(|group| Group {
            folder: root.join(group),
            names,
        })
        .filter(|group| group.folder.join(group.names.limit).is_file())
        .collect()
}

fn number(file: &Path) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const MIB: u64 = 1 << 20;

    /// A folder with the layout of a root file system, removed at the end.
    struct Root(PathBuf);

    impl Root {
        fn new(name: &str, cgroup: &str) -> Self {
            let path = std::env::temp_dir().join(format!("zeusm-{name}-{}", std::process::id()));
            let root = Self(path);
            root.write("proc/self/cgroup", cgroup);
            root.write(
                "proc/meminfo",
                "MemTotal:        4096000 kB\nMemAvailable:    2048000 kB\nSwapFree:              0 kB\n",
            );
            root
        }

        fn write(&self, file: &str, text: &str) {
            let path = self.0.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn group(&self, folder: &str, names: &Names, limit: &str, usage: u64, cache: u64) {
            let file = |name: &str| format!("sys/fs/cgroup/{folder}/{name}");
            self.write(&file(names.limit), limit);
            self.write(&file(names.usage), &format!("{usage}\n"));
            let stat = format!("anon 1\n{}{cache}\nactive_file 5\n", names.cache);
            self.write(&file("memory.stat"), &stat);
        }

        fn readings(&self) -> (u64, u64) {
            let system = System::below(&self.0);
            (system.total(), system.available())
        }
    }

    impl Drop for Root {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn the_tightest_of_nested_groups_counts() {
        let root = Root::new("v2", "0::/a/b/c\n");
        assert_eq!(root.readings(), (4_096_000 << 10, 2_048_000 << 10));
        root.group("a", &SECOND, "900000000\n", 1000, 0);
        root.group("a/b", &SECOND, &format!("{}\n", 300 * MIB), 200 * MIB, 0);
        root.group("a/b/c", &SECOND, "max\n", 100 * MIB, 0);
        assert_eq!(root.readings(), (300 * MIB, 100 * MIB));
        root.group(
            "a/b/c",
            &SECOND,
            &format!("{}\n", 120 * MIB),
            100 * MIB,
            5 * MIB,
        );
        assert_eq!(root.readings(), (120 * MIB, 25 * MIB));
        root.group("a/b/c", &SECOND, &format!("{}\n", 120 * MIB), 130 * MIB, 0);
        assert_eq!(root.readings(), (120 * MIB, 0));
    }

    #[test]
    fn the_first_version_and_a_container_s_view_of_it_are_read() {
        let root = Root::new("v1", "4:memory:/docker/1234\n0::/x\n1:cpu:/y\n");
        // A container sees its own group as the root, under a path that is the host's.
        root.group(
            "memory",
            &FIRST,
            &format!("{}\n", 300 * MIB),
            80 * MIB,
            30 * MIB,
        );
        assert_eq!(root.readings(), (300 * MIB, 250 * MIB));
        root.group("memory", &FIRST, "9223372036854771712\n", 80 * MIB, 0);
        assert_eq!(root.readings(), (4_096_000 << 10, 2_048_000 << 10));
    }
}
