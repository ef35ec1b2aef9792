//! Probes a driver in a child process, as drivers may abort, crash or hang.

use std::fmt::Write as _;
use std::io::{self, PipeReader, Read, Write};
use std::mem;
use std::os::fd::AsRawFd;
use std::panic::{self, AssertUnwindSafe};
use std::time::{Duration, Instant};

/// The timeout of a probe.
const TIMEOUT: Duration = Duration::from_secs(20);
/// The interval of queries whether the child is running.
const POLL: Duration = Duration::from_millis(20);
/// The maximum number of bytes that are stored of a child's output beside the results, as a driver with tracing may write
/// without limit.
const MAX_OUTPUT: usize = 1 << 16;
/// The first character of result lines; other lines are the driver's own output.
const RESULT_MARK: char = '\u{1}';
/// The maximum number of characters of the driver's output in a message.
const MAX_QUOTED: usize = 300;
/// The signals of a crash. A process that dies of others was killed from outside.
const CRASHES: [i32; 6] = [
    libc::SIGABRT,
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGILL,
    libc::SIGFPE,
    libc::SIGSYS,
];

/// The report of a child.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Report {
    /// The results, in order.
    pub(super) results: Vec<String>,
    /// The end of the driver's own output.
    pub(super) output: String,
    /// Why the child did not complete, if so.
    pub(super) failure: Option<Failure>,
}

/// Why a child did not complete.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// It exited or crashed; the signal, if known.
    Exited(String),
    /// It was killed from outside, for instance when memory was exhausted, which says nothing about the driver.
    Killed(String),
    /// It did not exit before the timeout.
    TimedOut,
}

/// The child's end of the pipe.
pub(super) struct Output(io::PipeWriter);

impl Output {
    /// Writes a result as one line.
    pub(super) fn write(&mut self, result: &str) {
        let line = result.replace('\n', " ");
        // A failure is ignored, as it means that the reader has exited.
        let _ = self
            .0
            .write_all(format!("\n{RESULT_MARK}{line}\n").as_bytes());
    }
}

/// The last result of each child that completes.
const DONE: &str = "done";

/// Runs `probe` in a child of this process.
///
/// The child has only the thread that forks. If `probe` waits for a lock that another thread held, the child is killed at
/// the timeout.
pub(super) fn in_child(probe: impl FnOnce(&mut Output)) -> io::Result<Report> {
    let (reader, writer) = io::pipe()?;
    // SAFETY: the child runs `probe` on its own copy of the memory, and exits without running this process's destructors.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            prepare_for_crashes(&writer);
            let mut output = Output(writer);
            if panic::catch_unwind(AssertUnwindSafe(|| probe(&mut output))).is_ok() {
                output.write(DONE);
            }
            // SAFETY: exits at once, without running the parent's exit handlers.
            unsafe { libc::_exit(0) }
        }
        child => {
            drop(writer);
            let (text, in_time) = read(reader, || is_running(child), TIMEOUT);
            if !in_time && is_running(child) {
                // SAFETY: takes values. The number is the child's, unless another thread has waited for it since the query.
                unsafe { libc::kill(child, libc::SIGKILL) };
            }
            let signal = reap(child);
            Ok(report(&text, in_time, signal))
        }
    }
}

/// Prevents side effects of a crash of the child: no signal handlers of the parent, no core file, no output on the terminal.
fn prepare_for_crashes(output: &io::PipeWriter) {
    let none = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: all of these take values, and open descriptors.
    unsafe {
        for signal in CRASHES.into_iter().chain([libc::SIGPIPE]) {
            libc::signal(signal, libc::SIG_DFL);
        }
        libc::setrlimit(libc::RLIMIT_CORE, &none);
        libc::dup2(output.as_raw_fd(), libc::STDOUT_FILENO);
        libc::dup2(output.as_raw_fd(), libc::STDERR_FILENO);
    }
}

/// Whether the child has neither ended nor been waited for by another thread.
fn is_running(child: libc::pid_t) -> bool {
    // SAFETY: zeroes are valid for the structure.
    let mut found: libc::siginfo_t = unsafe { mem::zeroed() };
    let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: the structure outlives the call, and a call that succeeds sets its process number, to 0 if the child is running.
    unsafe {
        libc::waitid(libc::P_PID, child.cast_unsigned(), &mut found, options) == 0
            && found.si_pid() == 0
    }
}

/// The child's output, and whether it ended, or was done, before the timeout. The end of the pipe may come much later: a process
/// that another thread forked meanwhile has inherited its writing end.
fn read(
    mut reader: PipeReader,
    is_running: impl Fn() -> bool,
    timeout: Duration,
) -> (String, bool) {
    let done = format!("\n{RESULT_MARK}{DONE}\n");
    let end = Instant::now() + timeout;
    let (mut text, mut buffer) = (Vec::new(), [0; 4096]);
    let in_time = loop {
        let left = end.saturating_duration_since(Instant::now());
        // All that a child has written that is not running any more is in the pipe.
        let was_running = is_running();
        if left.is_zero() {
            break !was_running;
        }
        let mut ready = libc::pollfd {
            fd: reader.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: the one structure outlives the call.
        let found = unsafe { libc::poll(&mut ready, 1, left.min(POLL).as_millis() as i32) };
        if found == 0 {
            if was_running {
                continue;
            }
            break true;
        }
        if found < 0 {
            // After a signal a read could block beyond the timeout.
            if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted {
                continue;
            }
            break false;
        }
        match reader.read(&mut buffer) {
            Ok(0) => break true,
            Ok(count) => {
                text.extend_from_slice(&buffer[..count]);
                if text.ends_with(done.as_bytes()) {
                    break true;
                }
                if text.len() > MAX_OUTPUT {
                    drop_old_output(&mut text);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break true,
        }
    };
    (String::from_utf8_lossy(&text).into_owned(), in_time)
}

/// Drops the driver's output from the older half of the text; the results stay.
fn drop_old_output(text: &mut Vec<u8>) {
    let half = text.len() / 2;
    let line_end = text[..half].iter().rposition(|byte| *byte == b'\n');
    let old = line_end.map_or(half, |end| end + 1);
    let results: Vec<u8> = text[..old]
        .split_inclusive(|byte| *byte == b'\n')
        .filter(|line| line.starts_with(RESULT_MARK.encode_utf8(&mut [0; 4]).as_bytes()))
        .flatten()
        .copied()
        .collect();
    text.splice(..old, results);
}

/// Waits for the child with a timeout of one second, as a child that is blocked in the kernel may not exit. Returns the
/// signal that terminated it, if known: another thread of the program may wait for all children.
fn reap(child: libc::pid_t) -> Option<i32> {
    let end = Instant::now() + Duration::from_secs(1);
    loop {
        let mut status = 0;
        // SAFETY: the status outlives the call.
        let found = unsafe { libc::waitpid(child, &mut status, libc::WNOHANG) };
        if found == child {
            return libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status));
        }
        if found < 0 || Instant::now() > end {
            return None;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn report(text: &str, in_time: bool, signal: Option<i32>) -> Report {
    let mut results = Vec::new();
    let mut output = String::new();
    for line in text.lines().map(str::trim_end) {
        match line.strip_prefix(RESULT_MARK) {
            Some(result) => results.push(result.to_owned()),
            None if line.is_empty() => {}
            None => {
                let _ = write!(output, "{line} ");
            }
        }
    }
    let is_done = results.pop_if(|last| last == DONE).is_some();
    let trimmed = output.trim_end();
    let skipped = trimmed.chars().count().saturating_sub(MAX_QUOTED);
    let output: String = trimmed.chars().skip(skipped).collect();
    let failure = || {
        if !in_time {
            return Failure::TimedOut;
        }
        match signal {
            None => Failure::Exited("it ended the process".to_owned()),
            Some(signal) if CRASHES.contains(&signal) => {
                Failure::Exited(format!("it ended the process by signal {signal}"))
            }
            Some(signal) => Failure::Killed(format!("the process was killed by signal {signal}")),
        }
    };
    Report {
        results,
        failure: (!is_done).then(failure),
        output,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn results_are_told_apart_from_other_output() {
        let report = in_child(|output| {
            // Not with `println!`, which the test harness captures.
            io::stdout().write_all(b"a driver's banner\n").unwrap();
            io::stdout().flush().unwrap();
            output.write("one");
            output.write("two\nlines");
        });
        let expected = Report {
            results: vec!["one".to_owned(), "two lines".to_owned()],
            failure: None,
            output: "a driver's banner".to_owned(),
        };
        assert_eq!(report.unwrap(), expected);
    }

    #[test]
    fn the_output_of_a_child_that_aborts_is_quoted() {
        let report = in_child(|output| {
            output.write("one");
            let message = "Abort was called\n";
            // SAFETY: writes from a live buffer; the child ends here, by a signal.
            unsafe {
                libc::write(libc::STDERR_FILENO, message.as_ptr().cast(), message.len());
                libc::abort();
            }
        });
        let Report {
            results,
            failure,
            output,
        } = report.unwrap();
        assert_eq!(results, ["one"]);
        let Some(Failure::Exited(how)) = failure else {
            panic!("{failure:?}");
        };
        assert!(how.contains("signal 6"), "{how}");
        assert_eq!(output, "Abort was called");
    }

    #[test]
    fn much_output_hides_no_results() {
        for line in [&b"trace\n"[..], b"no end of the line"] {
            let report = in_child(|output| {
                output.write("one");
                for _ in 0..4 * MAX_OUTPUT / line.len() {
                    io::stdout().write_all(line).unwrap();
                }
                io::stdout().write_all(b"\nthe end\n").unwrap();
                io::stdout().flush().unwrap();
                output.write("two");
            });
            let Report {
                results,
                output,
                failure,
            } = report.unwrap();
            assert_eq!(results, ["one", "two"]);
            assert!(output.ends_with("the end"), "{output}");
            assert_eq!(failure, None);
        }
    }

    #[test]
    fn a_child_that_is_killed_says_nothing_about_the_driver() {
        for signal in [libc::SIGKILL, libc::SIGTERM] {
            // SAFETY: ends the child.
            let report = in_child(|_| unsafe { _ = libc::raise(signal) }).unwrap();
            assert!(
                matches!(report.failure, Some(Failure::Killed(_))),
                "{report:?}"
            );
        }
    }

    /// As one that another thread of the program forks between the calls that make the pipe and the child.
    fn leave_a_process_with_the_pipe() {
        // SAFETY: the child only sleeps and exits.
        unsafe {
            if libc::fork() == 0 {
                libc::sleep(8);
                libc::_exit(0);
            }
        }
    }

    #[test]
    fn another_process_with_the_pipe_is_not_waited_for() {
        let begun = Instant::now();
        let report = in_child(|output| {
            leave_a_process_with_the_pipe();
            output.write("one");
        });
        assert_eq!(report.unwrap().failure, None);
        let report = in_child(|output| {
            leave_a_process_with_the_pipe();
            output.write("one");
            // SAFETY: ends the child.
            unsafe { libc::abort() }
        });
        let report = report.unwrap();
        assert_eq!(report.results, ["one"]);
        assert!(
            matches!(report.failure, Some(Failure::Exited(_))),
            "{report:?}"
        );
        assert!(begun.elapsed() < Duration::from_secs(5));
    }

    #[test]
    fn a_child_that_exits_early_has_failed() {
        // SAFETY: ends the child.
        let report = in_child(|_| unsafe { libc::_exit(0) }).unwrap();
        assert!(
            matches!(report.failure, Some(Failure::Exited(_))),
            "{report:?}"
        );
    }

    #[test]
    fn signals_do_not_extend_the_timeout() {
        extern "C" fn ignore(_: libc::c_int) {}
        // SAFETY: all bytes zero are a structure without flags, so that system calls are not restarted.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = ignore as extern "C" fn(libc::c_int) as usize;
        // SAFETY: the handler is empty, and no other test uses this signal.
        unsafe { libc::sigaction(libc::SIGUSR2, &action, std::ptr::null_mut()) };
        let (sender, receiver) = std::sync::mpsc::channel();
        let (reader, _writer) = io::pipe().unwrap();
        std::thread::spawn(move || {
            // SAFETY: takes no argument.
            sender.send(Err(unsafe { libc::pthread_self() })).unwrap();
            sender
                .send(Ok(read(reader, || true, Duration::from_millis(200))))
                .unwrap();
        });
        let thread = receiver.recv().unwrap().unwrap_err();
        std::thread::sleep(Duration::from_millis(50));
        // SAFETY: the thread runs until its result is received.
        unsafe { libc::pthread_kill(thread, libc::SIGUSR2) };
        let result = receiver.recv_timeout(Duration::from_secs(10)).unwrap();
        assert_eq!(result, Ok((String::new(), false)));
    }
}
