#![allow(clippy::unwrap_used)]

use super::*;

/// A process with so many budget of at most 10000.
fn write(proc: &Path, used: usize) {
    for folder in ["sys/vm", "self"] {
        fs::create_dir_all(proc.join(folder)).unwrap();
    }
    fs::write(proc.join("sys/vm/max_map_count"), "10000\n").unwrap();
    fs::write(proc.join("self/maps"), "a mapping\n".repeat(used)).unwrap();
}

#[test]
fn allocations_end_before_the_limit_however_fast_they_come() {
    let proc = tempfile::tempdir().unwrap();
    let (budget, mut used, mut made) = (AtomicUsize::new(0), 100, 0);
    loop {
        write(proc.path(), used);
        match check(&budget, proc.path()) {
            Ok(()) => (used, made) = (used + PER_ALLOCATION, made + 1),
            Err(Error::TooManyMappings { limit, used: seen }) => {
                assert_eq!((limit, seen), (10_000, used));
                break;
            }
            Err(error) => panic!("{error}"),
        }
    }
    let most = (10_000 - 100 - RESERVE) / PER_ALLOCATION;
    assert!((most - 1..=most).contains(&made), "{made} of {most}");
    // Once others are freed, there is room again.
    write(proc.path(), used - 100);
    check(&budget, proc.path()).unwrap();
}

#[test]
fn the_figures_are_read_seldom_while_there_is_room() {
    let proc = tempfile::tempdir().unwrap();
    let budget = AtomicUsize::new(0);
    write(proc.path(), 0);
    check(&budget, proc.path()).unwrap();
    let count = (10_000 - RESERVE) / PER_ALLOCATION / 2;
    write(proc.path(), 10_000);
    for _ in 0..count {
        check(&budget, proc.path()).unwrap();
    }
    assert!(check(&budget, proc.path()).is_err());
}

#[test]
fn without_figures_there_is_no_limit() {
    let budget = AtomicUsize::new(0);
    for _ in 0..10 {
        check(&budget, Path::new("/nowhere")).unwrap();
    }
    assert!(read(Path::new("/proc")).is_some());
}
