//! Asking a driver in a child process, since a driver may abort, crash or hang where it should answer.

use std::fmt::Write as _;
use std::io::{self, PipeReader, Read, Write};
use std::os::fd::AsRawFd;
use std::panic::{self, AssertUnwindSafe};
use std::time::{Duration, Instant};

/// How long a driver may take.
const LIMIT: Duration = Duration::from_secs(20);
/// How much of what a child writes is read at most; a driver that traces itself writes without end.
const MOST_TEXT: usize = 1 << 16;
/// What begins the lines that are answers; all else is what the driver prints.
const MARK: char = '\u{1}';
/// How many of the driver's last words are told.
const LAST_WORDS: usize = 300;

/// What came back from a child.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Report {
    /// What it answered, in order.
    pub(super) answers: Vec<String>,
    /// What the driver printed last.
    pub(super) words: String,
    /// How it ended otherwise than by returning.
    pub(super) died: Option<Death>,
}

/// How a child ended before it was done.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Death {
    /// By itself; the signal, if that can be told.
    Ended(String),
    /// It did not end in time.
    Hung,
}

/// Where the child's answers go.
pub(super) struct Answers(io::PipeWriter);

impl Answers {
    /// Gives an answer, one line.
    pub(super) fn give(&mut self, answer: &str) {
        let line = answer.replace('\n', " ");
        // Without a reader there is nobody to tell.
        let _ = self.0.write_all(format!("\n{MARK}{line}\n").as_bytes());
    }
}

/// The last answer of every child that is done.
const DONE: &str = "done";

/// Runs `ask` in a child of this process.
///
/// The child has the one thread that forks, and `ask` must not need a lock that another one may hold: a child that waits
/// for it is ended after a while.
pub(super) fn in_child(ask: impl FnOnce(&mut Answers)) -> io::Result<Report> {
    let (reader, writer) = io::pipe()?;
    // SAFETY: the child runs `ask` on memory of its own, and leaves without anything of this process's.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            calm(&writer);
            let mut answers = Answers(writer);
            if panic::catch_unwind(AssertUnwindSafe(|| ask(&mut answers))).is_ok() {
                answers.give(DONE);
            }
            // SAFETY: ends the child at once, without the handlers that the parent has registered.
            unsafe { libc::_exit(0) }
        }
        child => {
            drop(writer);
            let (text, in_time) = read(reader);
            if !in_time {
                // SAFETY: the child has not been waited for, so its number is still its own.
                unsafe { libc::kill(child, libc::SIGKILL) };
            }
            let signal = reap(child);
            Ok(report(&text, in_time, signal))
        }
    }
}

/// Has the child die without a trace: no handlers of the parent's, no core file, nothing on the terminal.
fn calm(output: &io::PipeWriter) {
    let signals = [
        libc::SIGABRT,
        libc::SIGSEGV,
        libc::SIGBUS,
        libc::SIGILL,
        libc::SIGFPE,
        libc::SIGSYS,
        libc::SIGPIPE,
    ];
    let none = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: all of these take values, and descriptors that are open.
    unsafe {
        for signal in signals {
            libc::signal(signal, libc::SIG_DFL);
        }
        libc::setrlimit(libc::RLIMIT_CORE, &none);
        libc::dup2(output.as_raw_fd(), libc::STDOUT_FILENO);
        libc::dup2(output.as_raw_fd(), libc::STDERR_FILENO);
    }
}

/// All that the child writes, and whether it came to an end in time.
fn read(mut reader: PipeReader) -> (String, bool) {
    let end = Instant::now() + LIMIT;
    let (mut text, mut piece) = (Vec::new(), [0; 4096]);
    let in_time = loop {
        let left = end.saturating_duration_since(Instant::now());
        let mut ready = libc::pollfd {
            fd: reader.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: the one structure outlives the call.
        let found = unsafe { libc::poll(&mut ready, 1, left.as_millis() as i32) };
        if found == 0 {
            break false;
        }
        match reader.read(&mut piece) {
            Ok(0) => break true,
            Ok(count) if text.len() < MOST_TEXT => text.extend_from_slice(&piece[..count]),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break true,
        }
    };
    (String::from_utf8_lossy(&text).into_owned(), in_time)
}

/// Waits for the child, though not for ever for one that the kernel keeps; the signal that ended it, if it can be told:
/// a program may have somebody else wait for all its children.
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
    let mut answers = Vec::new();
    let mut words = String::new();
    for line in text.lines().map(str::trim_end) {
        match line.strip_prefix(MARK) {
            Some(answer) => answers.push(answer.to_owned()),
            None if line.is_empty() => {}
            None => {
                let _ = write!(words, "{line} ");
            }
        }
    }
    let is_done = answers.pop_if(|last| last == DONE).is_some();
    let last = words.trim_end();
    let skipped = last.chars().count().saturating_sub(LAST_WORDS);
    let words: String = last.chars().skip(skipped).collect();
    let death = || {
        if !in_time {
            return Death::Hung;
        }
        let told = signal.map_or_else(
            || "it ended the process".to_owned(),
            |signal| format!("it ended the process by signal {signal}"),
        );
        Death::Ended(told)
    };
    Report {
        answers,
        died: (!is_done).then(death),
        words,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn answers_come_back_and_words_do_not_count() {
        let report = in_child(|answers| {
            println!("a driver's banner");
            answers.give("one");
            answers.give("two\nlines");
        });
        let expected = Report {
            answers: vec!["one".to_owned(), "two lines".to_owned()],
            died: None,
            words: "a driver's banner".to_owned(),
        };
        assert_eq!(report.unwrap(), expected);
    }

    #[test]
    fn a_child_that_aborts_leaves_its_last_words() {
        let report = in_child(|answers| {
            answers.give("one");
            let words = "Abort was called\n";
            // SAFETY: writes what is there; the child ends here, by a signal.
            unsafe {
                libc::write(libc::STDERR_FILENO, words.as_ptr().cast(), words.len());
                libc::abort();
            }
        });
        let Report {
            answers,
            died,
            words,
        } = report.unwrap();
        assert_eq!(answers, ["one"]);
        let Some(Death::Ended(how)) = died else {
            panic!("{died:?}");
        };
        assert!(how.contains("signal 6"), "{how}");
        assert_eq!(words, "Abort was called");
    }

    #[test]
    fn a_child_that_leaves_early_has_died() {
        // SAFETY: ends the child.
        let report = in_child(|_| unsafe { libc::_exit(0) }).unwrap();
        assert!(matches!(report.died, Some(Death::Ended(_))), "{report:?}");
    }
}
