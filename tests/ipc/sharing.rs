//! Exporting and opening memory.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::{fs, thread};

use rustix::process::{Resource, Rlimit};
use zeusm::ipc::{Error, is_supported};
use zeusm::pool::{Options, Pool};
use zeusm::usm::{Allocation, LevelZeroProvider};
use zeusm::{Context, Device, IpcHandle, UsmKind};

use super::child;
use super::common::{
    Undumpable, allocate, drop_capabilities, edited, hex, in_a_new_process, is_tracing_forbidden,
    kinds, open, read, setup, unhex, write,
};
use super::contents;

fn in_another_process(task: &str, handle: &IpcHandle) -> String {
    in_a_new_process(
        "sharing::another_process",
        &format!("{task} {}", hex(&handle.to_bytes())),
    )
}

#[test]
#[ignore = "the other process of the other tests"]
fn another_process() {
    let task = std::env::var("ZEUSM_TEST_IPC").unwrap();
    let (task, handle) = task.split_once(' ').unwrap();
    let target = setup();
    if task == "export" {
        let memory = allocate(&target, UsmKind::Device, 4096);
        let handle = IpcHandle::new(&memory, 0..4096).unwrap();
        println!("handle={}", hex(&handle.to_bytes()));
        return;
    }
    if task == "export-until-a-line" {
        return export_until_a_line(&target);
    }
    if task == "limited" {
        return limited(&target);
    }
    let handle = IpcHandle::from_bytes(&unhex(handle)).unwrap();
    match task {
        "increment" => increment(&handle, &target),
        "increment-untraced" => {
            drop_capabilities();
            assert!(is_tracing_forbidden(handle.process()));
            increment(&handle, &target);
        }
        "open-many" => open_many(&handle, &target),
        "freed" => {
            let answer = handle.open(&target.0, &target.1);
            assert!(matches!(answer, Err(Error::Freed { .. })), "{answer:?}");
        }
        other => panic!("{other}"),
    }
}

/// Exports memory with a limit on file sizes below its size, and again without the limit.
fn limited(target: &(Context, Device)) {
    let memory = allocate(target, UsmKind::Device, 4096);
    let usual = rustix::process::getrlimit(Resource::Fsize);
    for limit in [0, 4095] {
        let limited = Rlimit {
            current: Some(limit),
            ..usual
        };
        rustix::process::setrlimit(Resource::Fsize, limited).unwrap();
        let error = IpcHandle::new(&memory, 0..4096).unwrap_err();
        assert!(matches!(error, Error::System { .. }), "{error}");
        assert!(error.to_string().contains("RLIMIT_FSIZE"), "{error}");
    }
    rustix::process::setrlimit(Resource::Fsize, usual).unwrap();
    IpcHandle::new(&memory, 0..4096).unwrap();
}

/// `size` bytes that count from `first` on.
fn counted(size: usize, first: usize) -> Vec<u8> {
    (first..first + size).map(|value| value as u8).collect()
}

/// Checks that the bytes are 0, 1, 2, ..., and adds 1 to each of them.
fn increment(handle: &IpcHandle, target: &(Context, Device)) {
    let mapping = handle.open(&target.0, &target.1).unwrap();
    let bytes = read(target, mapping.as_ptr(), mapping.size());
    contents::check(&bytes, &counted(mapping.size(), 0));
    write(target, mapping.as_ptr(), &counted(mapping.size(), 1));
}

/// How many descriptors the process has.
fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Opens and closes another process's memory, which leaves no descriptor.
fn open_many(handle: &IpcHandle, target: &(Context, Device)) {
    drop(open(handle, target).unwrap());
    let before = descriptors();
    for _ in 0..10_000 {
        drop(open(handle, target).unwrap());
    }
    assert_eq!(descriptors(), before);
}

fn another_process_increments(task: &str) {
    let target = setup();
    for kind in kinds(&target) {
        for (size, range) in [
            (100, 0..100),
            (5000, 17..4999),
            (9 << 20, 12_345..9_000_000),
        ] {
            let memory = allocate(&target, kind, size);
            let mut expected = vec![200; size];
            expected[range.clone()].copy_from_slice(&counted(range.len(), 0));
            write(&target, memory.as_ptr(), &expected);
            in_another_process(task, &IpcHandle::new(&memory, range.clone()).unwrap());
            expected[range.clone()].copy_from_slice(&counted(range.len(), 1));
            contents::check(&read(&target, memory.as_ptr(), size), &expected);
        }
    }
}

#[test]
fn another_process_reads_and_writes_a_range() {
    another_process_increments("increment");
}

#[test]
fn another_process_opens_memory_many_times() {
    let target = setup();
    let memory = allocate(&target, UsmKind::Device, 5000);
    in_another_process("open-many", &IpcHandle::new(&memory, 0..5000).unwrap());
}

#[test]
fn memory_is_opened_where_tracing_is_forbidden() {
    let _undumpable = Undumpable::new();
    another_process_increments("increment-untraced");
}

/// Exports memory, which is alive until the standard input has a line; afterwards the memory has the importer's bytes.
fn export_until_a_line(target: &(Context, Device)) {
    let memory = allocate(target, UsmKind::Device, 100);
    write(target, memory.as_ptr(), &counted(100, 0));
    let handle = IpcHandle::new(&memory, 0..100).unwrap();
    println!("handle={}", hex(&handle.to_bytes()));
    std::io::stdin().read_line(&mut String::new()).unwrap();
    contents::check(&read(target, memory.as_ptr(), 100), &counted(100, 1));
}

/// A command that runs [`another_process`] in a PID namespace of its own; `None` if the system does not permit that.
fn in_a_pid_namespace(task: &str) -> Option<Command> {
    let unshare = || {
        let mut command = Command::new("unshare");
        command.args(["--pid", "--fork", "--mount-proc"]);
        command
    };
    if !unshare().arg("true").status().is_ok_and(|it| it.success()) {
        println!("skipped: `unshare --pid` is not permitted");
        return None;
    }
    let program = child::command("sharing::another_process");
    let mut command = unshare();
    command.arg(program.get_program()).args(program.get_args());
    command.env("ZEUSM_TEST_IPC", task);
    Some(command)
}

#[test]
fn a_process_of_another_pid_namespace_imports() {
    let target = setup();
    let memory = allocate(&target, UsmKind::Device, 100);
    write(&target, memory.as_ptr(), &counted(100, 0));
    let handle = IpcHandle::new(&memory, 0..100).unwrap();
    let task = format!("increment {}", hex(&handle.to_bytes()));
    let Some(command) = in_a_pid_namespace(&task) else {
        return;
    };
    child::run(command);
    contents::check(&read(&target, memory.as_ptr(), 100), &counted(100, 1));
}

#[test]
fn a_process_of_another_pid_namespace_exports() {
    let Some(mut command) = in_a_pid_namespace("export-until-a-line -") else {
        return;
    };
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut exporter = command.spawn().unwrap();
    let mut output = BufReader::new(exporter.stdout.take().unwrap()).lines();
    let line = output.find_map(|line| Some(line.unwrap().split_once("handle=")?.1.to_owned()));
    let handle = IpcHandle::from_bytes(&unhex(&line.unwrap())).unwrap();
    increment(&handle, &setup());
    exporter.stdin.take().unwrap().write_all(b"\n").unwrap();
    output.for_each(drop);
    assert!(exporter.wait().unwrap().success());
}

#[test]
fn a_handle_describes_its_memory() {
    let target = setup();
    for kind in kinds(&target) {
        // Not from a pool, whose blocks are parts of the driver's allocation.
        let memory = Allocation::direct(&target.0, &target.1, kind, 3000, 0).unwrap();
        let handle = IpcHandle::new(&memory, 1000..1500).unwrap();
        let known = target.0.pointer_attributes(memory.as_ptr().addr()).unwrap();
        assert_eq!((handle.kind(), handle.size()), (kind, 500));
        assert_eq!(handle.offset(), memory.as_ptr().addr() - known.base + 1000);
        assert_eq!(handle.allocation_id(), known.id);
        assert_eq!(handle.device_uuid(), target.1.uuid());
        assert_eq!(handle.process(), std::process::id());
        let mapping = open(&handle, &target).unwrap();
        assert_eq!((mapping.exported_kind(), mapping.size()), (kind, 500));
        // Intel's driver opens shared memory as device memory.
        let as_device = (kind, mapping.kind()) == (UsmKind::Shared, UsmKind::Device);
        assert!(mapping.kind() == kind || as_device);
        assert!(mapping.context() == &target.0 && mapping.device() == &target.1);
    }
}

#[test]
fn opening_twice_maps_once_and_closing_the_last_unmaps() {
    let target = setup();
    let memory = allocate(&target, UsmKind::Device, 1 << 20);
    let handle = IpcHandle::new(&memory, 0..1 << 20).unwrap();
    let mappings: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| open(&handle, &target).unwrap()))
            .collect();
        threads.into_iter().map(|it| it.join().unwrap()).collect()
    });
    let pointer = mappings[0].as_ptr();
    assert!(mappings.iter().all(|it| it.as_ptr() == pointer));
    assert_ne!(pointer, memory.as_ptr());
    // A sub-range is a part of the same mapping.
    let part = open(&IpcHandle::new(&memory, 4096..8192).unwrap(), &target).unwrap();
    assert_eq!(part.as_ptr().addr(), pointer.addr() + 4096);
    let is_mapped = || target.0.pointer_attributes(pointer.addr()).is_ok();
    drop(mappings);
    assert!(is_mapped());
    drop(part);
    assert!(!is_mapped());
}

#[test]
fn each_context_has_a_mapping_of_its_own() {
    let target = setup();
    let other = (Context::new(target.1.driver()).unwrap(), target.1.clone());
    let memory = allocate(&target, UsmKind::Device, 1 << 20);
    let handle = IpcHandle::new(&memory, 0..1 << 20).unwrap();
    let mappings = [&target, &other].map(|target| (target, open(&handle, target).unwrap()));
    assert_ne!(mappings[0].1.as_ptr(), mappings[1].1.as_ptr());
    for ((context, _), mapping) in &mappings {
        assert!(context.pointer_attributes(mapping.as_ptr().addr()).is_ok());
    }
}

#[test]
fn freed_memory_cannot_be_opened() {
    let target = setup();
    for size in [64, 100_000, 9 << 20] {
        let memory = allocate(&target, UsmKind::Device, size);
        let neighbour = allocate(&target, UsmKind::Device, size);
        let handle = IpcHandle::new(&memory, 0..size).unwrap();
        let mapping = open(&handle, &target).unwrap();
        write(&target, memory.as_ptr(), &vec![8; size]);
        drop(memory);
        let answer = open(&handle, &target);
        assert!(matches!(answer, Err(Error::Freed { .. })), "{answer:?}");
        in_another_process("freed", &handle);
        // The mapping from before stays valid.
        assert_eq!(read(&target, mapping.as_ptr(), size)[size - 1], 8);
        drop(neighbour);
    }
}

#[test]
fn blocks_of_a_pool_are_exported_and_freed_separately() {
    let target = setup();
    let provider = LevelZeroProvider::new(&target.0, &target.1, UsmKind::Device);
    let pool = Pool::new(provider, Options::default());
    let mut blocks: Vec<_> = (0..3)
        .map(|_| Allocation::in_pool(&pool, 512, 0).unwrap())
        .collect();
    let handles: Vec<_> = blocks
        .iter()
        .map(|block| IpcHandle::new(block, 0..512).unwrap())
        .collect();
    // The blocks are parts of one allocation of the driver.
    assert_eq!(handles[0].allocation_id(), handles[2].allocation_id());
    assert_ne!(handles[0].offset(), handles[2].offset());
    for (block, handle) in blocks.iter().zip(&handles) {
        let counting: Vec<_> = (0..512).map(|index| index as u8).collect();
        write(&target, block.as_ptr(), &counting);
        in_another_process("increment", handle);
        assert_eq!(read(&target, block.as_ptr(), 512)[..3], [1, 2, 3]);
    }
    drop(blocks.remove(0));
    assert!(matches!(
        open(&handles[0], &target),
        Err(Error::Freed { .. })
    ));
    in_another_process("freed", &handles[0]);
    assert!(open(&handles[1], &target).is_ok());
}

/// Intel's driver has them in a pool of its own, and closes the descriptor of the one with the end of the other.
#[test]
fn the_end_of_a_neighbour_leaves_an_export() {
    let target = setup();
    let counting: Vec<_> = (0..1000).map(|index| index as u8).collect();
    for kind in kinds(&target) {
        let direct = || Allocation::direct(&target.0, &target.1, kind, 1000, 0).unwrap();
        let [memory, neighbour, other] = std::array::from_fn(|_| direct());
        let handle = IpcHandle::new(&memory, 0..1000).unwrap();
        let neighbours = IpcHandle::new(&neighbour, 0..1000).unwrap();
        drop((neighbour, other));
        in_another_process("freed", &neighbours);
        for handle in [handle, IpcHandle::new(&memory, 0..1000).unwrap()] {
            write(&target, memory.as_ptr(), &counting);
            in_another_process("increment", &handle);
            assert_eq!(read(&target, memory.as_ptr(), 1000)[..3], [1, 2, 3]);
        }
    }
}

#[test]
fn the_exit_of_the_exporter_is_reported() {
    let output = in_a_new_process("sharing::another_process", "export -");
    let handle = output.split("handle=").nth(1).unwrap();
    let handle = unhex(&handle[..2 * IpcHandle::LENGTH]);
    let handle = IpcHandle::from_bytes(&handle).unwrap();
    let answer = open(&handle, &setup());
    let Err(Error::ExporterGone(process)) = answer else {
        panic!("{answer:?}");
    };
    assert_eq!(process, handle.process());
    // Its process id may have been reused, here by this process.
    let reused = edited(&handle, 12, &std::process::id().to_le_bytes());
    let answer = open(&reused, &setup());
    assert!(
        matches!(answer, Err(Error::ExporterGone { .. })),
        "{answer:?}"
    );
}

#[test]
fn another_machine_and_another_device_are_reported() {
    let target = setup();
    let memory = allocate(&target, UsmKind::Host, 64);
    let handle = IpcHandle::new(&memory, 0..64).unwrap();
    let answer = open(&edited(&handle, 16, &[7; 16]), &target);
    let Err(error @ Error::AnotherMachine { .. }) = answer else {
        panic!("{answer:?}");
    };
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    assert!(error.to_string().contains(boot.trim()), "{error}");
    assert!(error.to_string().contains("07070707-0707"), "{error}");
    let answer = open(&edited(&handle, 32, &[9; 16]), &target);
    let Err(error @ Error::AnotherDevice { .. }) = answer else {
        panic!("{answer:?}");
    };
    assert!(error.to_string().contains(target.1.name()), "{error}");
}

#[test]
fn shared_memory_that_migrates_is_refused() {
    let mut command = child::command("sharing::shared_memory_that_may_migrate");
    command.env("ZEUSM_CPU_DISCRETE", "1");
    child::run(command);
}

#[test]
#[ignore = "run by the test above"]
fn shared_memory_that_may_migrate() {
    let target = setup();
    let memory = allocate(&target, UsmKind::Shared, 64);
    let answer = IpcHandle::new(&memory, 0..64);
    let migrates = target.1.migrates_shared_memory();
    assert!(migrates || !target.1.name().contains("CPU runtime"));
    match answer {
        Err(error @ Error::Migrates { .. }) if migrates => {
            assert!(error.to_string().contains(target.1.name()), "{error}");
        }
        answer => assert!(answer.is_ok() && !migrates, "{answer:?}"),
    }
    for kind in kinds(&target) {
        IpcHandle::new(&allocate(&target, kind, 64), 0..64).unwrap();
    }
}

#[test]
fn a_file_size_limit_is_reported() {
    in_a_new_process("sharing::another_process", "limited -");
}

#[test]
fn the_driver_supports_ipc() {
    assert!(is_supported(setup().1.driver()).unwrap());
}

#[test]
fn ranges_are_checked() {
    let target = setup();
    let memory = allocate(&target, UsmKind::Host, 64);
    for (range, named) in [(0..65, "0 to 65"), (64..65, "64 to 65")] {
        let error = IpcHandle::new(&memory, range).unwrap_err();
        assert!(matches!(error, Error::Range { .. }) && error.to_string().contains(named));
    }
    for size in [0, 64] {
        let memory = allocate(&target, UsmKind::Host, size);
        let error = IpcHandle::new(&memory, 0..0).unwrap_err();
        assert!(matches!(error, Error::NothingToShare { .. }), "{error}");
    }
}

#[test]
#[ignore = "counts the descriptors and mappings of its process; the next test runs it"]
fn open_and_close_many_times() {
    let target = setup();
    let count = |what: &str| {
        let folder = fs::read_dir(format!("/proc/self/{what}"));
        folder.unwrap().count()
    };
    let memory = allocate(&target, UsmKind::Device, 5000);
    let handle = IpcHandle::new(&memory, 0..5000).unwrap();
    let other = || {
        let other = allocate(&target, UsmKind::Device, 300_000);
        let handle = IpcHandle::new(&other, 0..300_000).unwrap();
        drop(open(&handle, &target).unwrap());
    };
    // The first round makes everything that stays for the process's life, a pool's memory included.
    drop(open(&handle, &target).unwrap());
    other();
    let maps = || {
        let all = fs::read_to_string("/proc/self/maps").unwrap();
        all.lines().filter(|line| line.contains("memfd:")).count()
    };
    let before = (count("fd"), count("task"), maps());
    for round in 0..10_000 {
        drop(open(&handle, &target).unwrap());
        if round % 50 == 0 {
            other();
        }
    }
    assert_eq!((count("fd"), count("task"), maps()), before);
}

#[test]
fn nothing_leaks() {
    in_a_new_process("sharing::open_and_close_many_times", "");
}
