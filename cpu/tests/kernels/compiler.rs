//! The process that builds modules, and what the program does beside it: it closes descriptors, waits for its children,
//! forks and ends.

#![allow(clippy::undocumented_unsafe_blocks)]

use std::fs::{self, File};
use std::io::{self, PipeReader, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};
use std::{env, thread};

use rustix::process::{Pid, Signal, kill_process};

use super::closed::{CONTENT, close_all, program_file};
use super::forks::in_child;
use super::process::alone_with;
use super::programs::{lanes, module};
use super::runtime::{Runtime, call, must};

/// Names the processes of one test: a compiler has the variables of its program.
pub const TOKEN: &str = "ZEUSM_TEST_COMPILER_OF";
const TIMEOUT: Duration = Duration::from_secs(20);

/// Runs an ignored test of this file in a process of its own.
fn alone(test: &str) {
    let token = format!("{}-{test}", std::process::id());
    alone_with(&format!("compiler::{test}"), &[(TOKEN, &token)]);
}

/// The processes that build modules for this test's process, each after the one that supervises it.
pub fn compilers() -> Vec<i32> {
    let variable = format!("{TOKEN}={}", env::var(TOKEN).unwrap());
    let is_one = |process: &i32| {
        let read = |name| fs::read(format!("/proc/{process}/{name}")).unwrap_or_default();
        let (environment, command) = (read("environ"), read("cmdline"));
        let mut variables = environment.split(|byte| *byte == 0);
        let linker = command.split(|byte| *byte == 0).next().unwrap_or_default();
        variables.any(|found| found == variable.as_bytes())
            && String::from_utf8_lossy(linker).contains("/ld-")
    };
    let names = fs::read_dir("/proc").unwrap().flatten();
    let numbers = names.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let found: Vec<i32> = numbers.filter(is_one).collect();
    let is_supervised = |process: &i32| parent(*process).is_some_and(|one| found.contains(&one));
    let (compilers, mut all): (Vec<_>, Vec<_>) = found.iter().partition(|one| is_supervised(one));
    all.extend(compilers);
    all
}

fn parent(process: i32) -> Option<i32> {
    let text = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("PPid:"))?;
    line.trim().parse().ok()
}

/// How long all threads of a process have run.
fn work_of(process: i32) -> io::Result<Duration> {
    let mut sum = Duration::ZERO;
    for task in fs::read_dir(format!("/proc/{process}/task"))? {
        let times = fs::read_to_string(task?.path().join("schedstat"))?;
        let ran = times.split_whitespace().next().unwrap().parse().unwrap();
        sum += Duration::from_nanos(ran);
    }
    Ok(sum)
}

/// Sends a signal to the process that builds modules in the middle of the build that follows. Returns its number.
fn signal_at_work(signal: Signal) -> (i32, thread::JoinHandle<()>) {
    let compiler = *compilers().last().unwrap();
    let before = work_of(compiler).unwrap();
    let sender = thread::spawn(move || {
        // Reading a job takes microseconds, and building it tens of milliseconds.
        while work_of(compiler).unwrap() < before + Duration::from_millis(3) {
            thread::yield_now();
        }
        kill_process(Pid::from_raw(compiler).unwrap(), signal).unwrap();
    });
    (compiler, sender)
}

/// Sends a signal to the process that builds modules in the middle of the build that follows, and to the one that replaces it.
fn signal_twice(signal: Signal) -> (i32, thread::JoinHandle<()>) {
    let (before, program) = (compilers(), i32::try_from(std::process::id()).ok());
    let (first, sender) = signal_at_work(signal);
    let again = thread::spawn(move || {
        sender.join().unwrap();
        // Not its supervisor, whose end has no status, nor the process that starts these, which may have ended already.
        let is_second = |one: &i32| {
            let is_supervisor =
                |above: i32| compilers().contains(&above) && parent(above) != program;
            !before.contains(one) && parent(*one).is_some_and(is_supervisor)
        };
        let second = loop {
            match compilers().into_iter().rfind(is_second) {
                Some(one) => break one,
                None => thread::yield_now(),
            }
        };
        // It may still ignore the signal, as the program that it is a copy of.
        while compilers().contains(&second) {
            let _ = kill_process(Pid::from_raw(second).unwrap(), signal);
            thread::yield_now();
        }
    });
    (first, again)
}

fn build(runtime: &Runtime) {
    let module = runtime.build(&module(), &[]).unwrap();
    must!(runtime, zeModuleDestroy(module));
}

/// Waits until there are no processes that build modules.
fn await_the_end_of_compilers() -> bool {
    let deadline = Instant::now() + TIMEOUT;
    while Instant::now() < deadline {
        if compilers().is_empty() {
            return true;
        }
        thread::sleep(Duration::from_millis(20));
    }
    false
}

/// Nothing was written to a socket of the program or read from it, and it is open.
fn is_untouched((one, other): &(UnixStream, UnixStream)) -> bool {
    let mut byte = [0];
    let (mut one, mut other) = (one, other);
    one.write_all(b"Z").unwrap();
    other.write_all(b"Z").unwrap();
    let mut has_one_byte = |mut end: &UnixStream| {
        end.set_nonblocking(true).unwrap();
        end.read(&mut byte).is_ok() && byte == *b"Z" && end.read(&mut byte).is_err()
    };
    has_one_byte(one) && has_one_byte(other)
}

#[test]
fn files_with_the_numbers_of_closed_descriptors_are_left_alone() {
    alone("closes_descriptors_and_opens_files");
}

#[test]
#[ignore = "closes all descriptors; run by the test before"]
fn closes_descriptors_and_opens_files() {
    let Some(runtime) = Runtime::with_compiler() else {
        return;
    };
    close_all();
    let files: Vec<File> = (0..40).map(|_| program_file()).collect();
    build(&runtime);
    for file in files {
        let mut content = [0; CONTENT.len()];
        file.read_exact_at(&mut content, 0).unwrap();
        assert_eq!(content, CONTENT);
    }
}

#[test]
fn sockets_with_the_numbers_of_closed_descriptors_are_left_alone() {
    alone("closes_descriptors_and_opens_sockets");
}

/// A read of one of the sockets would block.
#[test]
#[ignore = "closes all descriptors; run by the test before"]
fn closes_descriptors_and_opens_sockets() {
    let Some(runtime) = Runtime::with_compiler() else {
        return;
    };
    close_all();
    let pairs: Vec<_> = (0..20).map(|_| UnixStream::pair().unwrap()).collect();
    build(&runtime);
    assert!(pairs.iter().all(is_untouched));
}

#[test]
fn a_socket_in_the_place_of_the_compiler_s_receives_no_module() {
    alone("replaces_sockets");
}

#[test]
#[ignore = "replaces a descriptor of the runtime's; run by the test before"]
fn replaces_sockets() {
    let Some(runtime) = Runtime::with_compiler() else {
        return;
    };
    let names = fs::read_dir("/proc/self/fd").unwrap().flatten();
    let names = names.filter(|entry| {
        fs::read_link(entry.path())
            .is_ok_and(|target| target.to_string_lossy().starts_with("socket:"))
    });
    let numbers: Vec<i32> = names
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|number| *number > 2)
        .collect();
    assert!(!numbers.is_empty());
    let pair = UnixStream::pair().unwrap();
    for number in numbers {
        assert_eq!(unsafe { libc::dup2(pair.0.as_raw_fd(), number) }, number);
    }
    build(&runtime);
    assert!(is_untouched(&pair));
    // The former compiler has ended, since its socket was closed.
    let deadline = Instant::now() + TIMEOUT;
    while compilers().len() > 2 && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(compilers().len(), 2);
}

/// A pipe of the program, which processes that it starts inherit.
fn inheritable_pipe() -> (PipeReader, io::PipeWriter) {
    let (reader, writer) = io::pipe().unwrap();
    assert_eq!(
        unsafe { libc::fcntl(writer.as_raw_fd(), libc::F_SETFD, 0) },
        0
    );
    (reader, writer)
}

/// Whether the pipe ends once the program has closed it.
fn ends((reader, writer): (PipeReader, io::PipeWriter)) -> bool {
    drop(writer);
    let mut polled = libc::pollfd {
        fd: reader.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    unsafe { libc::poll(&raw mut polled, 1, 5000) == 1 }
}

#[test]
fn a_pipe_of_the_program_ends_when_the_program_closes_it() {
    alone("closes_a_pipe");
}

#[test]
#[ignore = "run by the test before, in a process that starts no others"]
fn closes_a_pipe() {
    let pipe = inheritable_pipe();
    if Runtime::with_compiler().is_some() {
        assert!(ends(pipe));
    }
}

#[test]
fn the_process_that_builds_modules_is_no_child_of_the_program() {
    alone("waits_for_all_children");
}

#[test]
#[ignore = "waits for any child; run by the test before"]
fn waits_for_all_children() {
    // Takes the status of a process that the runtime starts.
    thread::spawn(|| {
        loop {
            unsafe { libc::waitpid(-1, std::ptr::null_mut(), 0) };
            thread::yield_now();
        }
    });
    let Some(runtime) = Runtime::with_compiler() else {
        return;
    };
    let found = unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) };
    assert_eq!(found, -1, "there is a child");
    assert_eq!(
        io::Error::last_os_error().raw_os_error(),
        Some(libc::ECHILD)
    );
    // Another one is started in the same way.
    let [supervisor, compiler] = compilers()[..] else {
        panic!("two processes: {:?}", compilers());
    };
    assert_eq!(parent(compiler), Some(supervisor));
    kill_process(Pid::from_raw(compiler).unwrap(), Signal::KILL).unwrap();
    build(&runtime);
    assert!(!compilers().contains(&compiler));
}

/// The process that builds modules is killed in the middle of a job, by the system when memory is short for instance.
#[test]
fn a_compiler_that_is_killed_at_work_is_replaced() {
    alone("kills_the_compiler");
}

#[test]
#[ignore = "run by the test before, with one compiler"]
fn kills_the_compiler() {
    let Some(runtime) = Runtime::with_compiler() else {
        return;
    };
    let (compiler, killer) = signal_at_work(Signal::KILL);
    build(&runtime);
    killer.join().unwrap();
    assert!(!compilers().contains(&compiler));
}

/// The optimiser of Intel's compiler crashes or does not end on some modules (`dpnp.sort` of bytes): it is done without.
#[test]
fn a_module_that_takes_too_long_is_built_without_optimisation() {
    alone("exceeds_the_time_limit_once");
}

#[test]
#[ignore = "run by the test before, with one compiler"]
fn exceeds_the_time_limit_once() {
    let Some(runtime) = Runtime::with_compiler() else {
        return;
    };
    let (compiler, sender) = signal_at_work(Signal::PROF);
    build(&runtime);
    sender.join().unwrap();
    assert!(!compilers().contains(&compiler));
}

/// Without optimisation kernels with sub-groups may be wrong.
#[test]
fn a_kernel_that_names_a_size_of_sub_groups_is_built_with_optimisation_or_not_at_all() {
    alone("exceeds_the_time_limit_with_sub_groups");
}

#[test]
#[ignore = "run by the test before, with one compiler"]
fn exceeds_the_time_limit_with_sub_groups() {
    let Some(runtime) = Runtime::with_compiler() else {
        return;
    };
    let (_, sender) = signal_at_work(Signal::PROF);
    let (_, log) = runtime.build(&lanes(), &[]).unwrap_err();
    sender.join().unwrap();
    let reason = ["SIGPROF", "ZEUSM_COMPILER_SECONDS"];
    assert!(reason.iter().all(|word| log.contains(word)), "{log}");
    let module = runtime.build(&lanes(), &[]).unwrap();
    must!(runtime, zeModuleDestroy(module));
}

/// The signal of the time limit arrives, and is reported, in a program that ignores it and its children.
#[test]
fn a_module_that_takes_too_long_is_reported_as_such() {
    alone("exceeds_the_time_limit");
}

#[test]
#[ignore = "run by the test before, with one compiler"]
fn exceeds_the_time_limit() {
    for signal in [libc::SIGCHLD, libc::SIGPROF] {
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
    let Some(runtime) = Runtime::with_compiler() else {
        return;
    };
    let (compiler, sender) = signal_twice(Signal::PROF);
    let (_, log) = runtime.build(&module(), &[]).unwrap_err();
    sender.join().unwrap();
    assert!(log.contains("SIGPROF"), "{log}");
    assert!(!compilers().contains(&compiler));
    build(&runtime);
}

#[test]
fn the_compiler_ends_with_its_program() {
    alone("ends_before_a_child");
}

/// A child of the program has the socket of the compiler, and lives longer.
#[test]
#[ignore = "run by the test before, with one compiler"]
fn ends_before_a_child() {
    let (mut ended, end) = io::pipe().unwrap();
    in_child(|| {
        let Some(runtime) = Runtime::with_compiler() else {
            return true;
        };
        build(&runtime);
        assert!(!compilers().is_empty());
        if unsafe { libc::fork() } == 0 {
            // Ends with the parent of both, at the latest.
            unsafe { libc::close(end.as_raw_fd()) };
            let _ = ended.read(&mut [0]);
            unsafe { libc::_exit(0) };
        }
        true
    });
    assert!(await_the_end_of_compilers(), "{:?}", compilers());
    drop(end);
}
