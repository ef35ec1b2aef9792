//! How much memory this process may use, by the machine and by its control groups.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Bytes of memory that the process can ever have: the machine's, or its control group's limit if that is lower.
pub fn total() -> u64 {
    static TOTAL: OnceLock<u64> = OnceLock::new();
    *TOTAL.get_or_init(|| {
        let machine = meminfo("MemTotal:").unwrap_or(u64::MAX);
        groups()
            .iter()
            .filter_map(|group| group.limit())
            .fold(machine, u64::min)
    })
}

/// A reading of what is available is good for this long: reading takes longer than a large allocation.
const FRESH: Duration = Duration::from_millis(20);

/// Bytes that could be used right now without swapping.
pub fn available() -> u64 {
    static LAST: Mutex<Option<(Instant, u64)>> = Mutex::new(None);
    // Nobody waits here, nor holds the lock while reading: a fork may leave it locked in the child for good.
    let fresh = LAST
        .try_lock()
        .and_then(|last| last.filter(|(when, _)| when.elapsed() < FRESH));
    if let Some((_, bytes)) = fresh {
        return bytes;
    }
    let machine = meminfo("MemAvailable:").unwrap_or(u64::MAX);
    let swap = meminfo("SwapFree:").unwrap_or(0);
    let bytes = groups()
        .iter()
        .filter_map(Group::room)
        .fold(machine.saturating_add(swap), u64::min);
    if let Some(mut last) = LAST.try_lock() {
        *last = Some((Instant::now(), bytes));
    }
    bytes
}

/// The largest single allocation without relaxed limits: half of the memory.
pub fn most_at_once() -> u64 {
    total() / 2
}

fn meminfo(field: &str) -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(field))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// A control group with a say in the process's memory.
struct Group {
    folder: PathBuf,
    limit: &'static str,
    usage: &'static str,
}

impl Group {
    fn limit(&self) -> Option<u64> {
        // Version 2 writes "max" for none, which is no number; version 1 a number beyond any machine.
        number(&self.folder.join(self.limit))
    }

    fn room(&self) -> Option<u64> {
        let cache = fs::read_to_string(self.folder.join("memory.stat"))
            .ok()
            .and_then(|text| {
                text.lines()
                    .find_map(|line| line.strip_prefix("inactive_file ")?.parse::<u64>().ok())
            });
        let used = number(&self.folder.join(self.usage))?.saturating_sub(cache.unwrap_or(0));
        Some(self.limit()?.saturating_sub(used))
    }
}

/// The process's control groups, from its own up to the root, in either version's hierarchy.
fn groups() -> &'static [Group] {
    static GROUPS: OnceLock<Vec<Group>> = OnceLock::new();
    GROUPS.get_or_init(|| {
        let text = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        text.lines().flat_map(hierarchy).collect()
    })
}

fn hierarchy(line: &str) -> Vec<Group> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else {
        return Vec::new();
    };
    let (root, limit, usage) = if controllers.is_empty() {
        ("/sys/fs/cgroup", "memory.max", "memory.current")
    } else if controllers
        .split(',')
        .any(|controller| controller == "memory")
    {
        (
            "/sys/fs/cgroup/memory",
            "memory.limit_in_bytes",
            "memory.usage_in_bytes",
        )
    } else {
        return Vec::new();
    };
    let own = Path::new(path.trim_start_matches('/'));
    own.ancestors()
        .map(|group| Group {
            folder: Path::new(root).join(group),
            limit,
            usage,
        })
        .filter(|group| group.folder.join(limit).is_file())
        .collect()
}

fn number(file: &Path) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}
