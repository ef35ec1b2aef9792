//! The machine by the files of `/proc`, `/sys` and `/etc`.

use std::fs;

/// The processor's name in `/proc/cpuinfo`.
pub fn model() -> Option<String> {
    cpuinfo("model name")
}

/// The highest clock in MHz that the system reports, else the current one.
pub fn megahertz() -> Option<u32> {
    let highest = fs::read_to_string("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq")
        .ok()
        .and_then(|text| text.trim().parse::<u32>().ok())
        .map(|kilohertz| kilohertz / 1000);
    highest.or_else(|| cpuinfo("cpu MHz")?.split('.').next()?.parse().ok())
}

/// Length in bytes of a line of the data cache; 0 where the system does not tell.
pub fn cache_line() -> usize {
    // SAFETY: the call has no preconditions.
    let length = unsafe { libc::sysconf(libc::_SC_LEVEL1_DCACHE_LINESIZE) };
    usize::try_from(length).unwrap_or(0)
}

/// Size in bytes of the largest cache.
pub fn largest_cache() -> Option<usize> {
    let files = (0..8).map_while(|index| {
        let file = format!("/sys/devices/system/cpu/cpu0/cache/index{index}/size");
        fs::read_to_string(file).ok()
    });
    let kibibytes = files.filter_map(|text| text.trim().strip_suffix('K')?.parse::<usize>().ok());
    kibibytes.max().map(|kibibytes| kibibytes << 10)
}

/// A text that stays the same on this machine.
pub fn identity() -> Option<String> {
    ["/etc/machine-id", "/sys/class/dmi/id/product_uuid"]
        .iter()
        .find_map(|file| fs::read_to_string(file).ok())
}

/// Whether the files can be read that say what memory is available: not when the process or the machine has too many open.
pub fn tells_memory() -> bool {
    let opened = fs::File::open("/proc/meminfo").map_err(|error| error.raw_os_error());
    !matches!(opened, Err(Some(libc::EMFILE | libc::ENFILE)))
}

fn cpuinfo(field: &str) -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == field).then(|| value.trim().to_owned())
    })
}
