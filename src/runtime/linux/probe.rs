//! Probes a driver in a child process, as drivers may abort, crash or hang.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::panic::{self, AssertUnwindSafe};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::MemfdFlags;

/// The timeout of a probe.
const TIMEOUT: Duration = Duration::from_secs(20);
/// The interval of queries whether the child is running.
const POLL: Duration = Duration::from_millis(5);
/// The maximum number of bytes that a child writes to a file: a driver with tracing may write without limit.
const MAX_OUTPUT: u64 = 64 << 20;
/// The maximum number of bytes of the driver's output in a message.
const MAX_QUOTED: u64 = 300;
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

/// The results of a child, one in each line.
pub(super) struct Output(File);

impl Output {
    /// Writes a result as one line.
    pub(super) fn write(&mut self, result: &str) {
        // A failure is ignored, as the result of a child that has not completed says why.
        let _ = writeln!(self.0, "{}", result.replace('\n', " "));
    }
}

/// The last result of each child that completes.
const DONE: &str = "done";

/// Runs `probe` in a child of this process, which writes to memory files, as it may end at any time.
///
/// The child has only the thread that forks. If `probe` waits for a lock that another thread held, the child is killed at
/// the timeout.
pub(super) fn in_child(probe: impl FnOnce(&mut Output)) -> io::Result<Report> {
    let file = || rustix::fs::memfd_create("zeusm-probe", MemfdFlags::CLOEXEC).map(File::from);
    let (results, output) = (file()?, file()?);
    // SAFETY: the child runs `probe` on its own copy of the memory, and exits without running this process's destructors.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            prepare_for_crashes(&output);
            let mut results = Output(results);
            if panic::catch_unwind(AssertUnwindSafe(|| probe(&mut results))).is_ok() {
                results.write(DONE);
            }
            // SAFETY: exits at once, without running the parent's exit handlers.
            unsafe { libc::_exit(0) }
        }
        child => {
            let ended = wait(child, TIMEOUT);
            if ended.is_none() {
                // SAFETY: takes values. The number is the child's, unless another thread has waited for it since the query.
                unsafe { libc::kill(child, libc::SIGKILL) };
                // A child that is blocked in the kernel may not exit.
                wait(child, Duration::from_secs(1));
            }
            Ok(report(&results, &output, ended))
        }
    }
}

/// Prevents side effects of a crash of the child: no signal handlers of the parent, no core file, no output on the terminal.
fn prepare_for_crashes(output: &File) {
    let limit = |most| libc::rlimit {
        rlim_cur: most,
        rlim_max: most,
    };
    // SAFETY: all of these take values, and open descriptors.
    unsafe {
        for signal in CRASHES {
            libc::signal(signal, libc::SIG_DFL);
        }
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
        libc::setrlimit(libc::RLIMIT_FSIZE, &limit(MAX_OUTPUT));
        libc::setrlimit(libc::RLIMIT_CORE, &limit(0));
        libc::dup2(output.as_raw_fd(), libc::STDOUT_FILENO);
        libc::dup2(output.as_raw_fd(), libc::STDERR_FILENO);
    }
}

/// Waits for the child; `None` when it runs until the timeout, else the signal that terminated it, if known: another thread of the
/// program may wait for all children.
fn wait(child: libc::pid_t, timeout: Duration) -> Option<Option<i32>> {
    let end = Instant::now() + timeout;
    loop {
        let mut status = 0;
        // SAFETY: the status outlives the call.
        match unsafe { libc::waitpid(child, &mut status, libc::WNOHANG) } {
            0 if Instant::now() > end => return None,
            0 => thread::sleep(POLL),
            found if found == child && libc::WIFSIGNALED(status) => {
                return Some(Some(libc::WTERMSIG(status)));
            }
            _ => return Some(None),
        }
    }
}

/// The last bytes of a file, at most so many.
fn end_of(file: &File, most: u64) -> String {
    let size = file.metadata().map_or(0, |about| about.len());
    let mut bytes = vec![0; size.min(most) as usize];
    // A failure leaves zeros.
    let _ = file.read_exact_at(&mut bytes, size.saturating_sub(most));
    String::from_utf8_lossy(&bytes).into_owned()
}

fn report(results: &File, output: &File, ended: Option<Option<i32>>) -> Report {
    let results = end_of(results, MAX_OUTPUT);
    let mut results: Vec<_> = results.lines().map(str::to_owned).collect();
    let is_done = results.pop_if(|last| last == DONE).is_some();
    let output = end_of(output, MAX_QUOTED);
    let words: Vec<_> = output.split_whitespace().collect();
    let failure = || match ended {
        None => Failure::TimedOut,
        Some(None) => Failure::Exited("it ended the process".to_owned()),
        Some(Some(signal)) if CRASHES.contains(&signal) => {
            Failure::Exited(format!("it ended the process by signal {signal}"))
        }
        Some(Some(signal)) => Failure::Killed(format!("the process was killed by signal {signal}")),
    };
    Report {
        results,
        failure: (!is_done).then(failure),
        output: words.join(" "),
    }
}

#[cfg(test)]
mod tests;
