#![allow(clippy::unwrap_used)]

use std::fs;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tempfile::TempDir;

use super::amount::UNLIMITED;
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
#[cfg_attr(miri, ignore = "Miri does not fork")]
fn limits_of_the_process_are_told_with_what_is_free() {
    crate::testing::in_child(|| {
        for (resource, name, option) in [
            (Resource::As, "RLIMIT_AS", "ulimit -v"),
            (Resource::Data, "RLIMIT_DATA", "ulimit -d"),
        ] {
            let is_it = |bound: &Bound| bound.what.starts_with(name);
            assert!(!Bound::all().iter().any(is_it));
            let limit = Rlimit {
                current: Some(1 << 40),
                ..getrlimit(resource)
            };
            setrlimit(resource, limit).unwrap();
            let bound = Bound::all().into_iter().find(is_it).unwrap();
            let Bound { limit, free, .. } = bound;
            assert_eq!(limit, 1 << 40);
            assert!((1 << 39..1 << 40).contains(&free), "{free}");
            assert!(bound.to_string().contains(option));
        }
        let free = Memory::now().available;
        let machine = Bound::all()[0];
        assert!(machine.free > free / 2 && machine.free <= machine.limit);
    });
}
