//! The client: starts the compiler process and sends it jobs.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, OFlags, fcntl_setfl, memfd_create};
use rustix::net::{self, SendFlags, Shutdown, shutdown};
use zeusm_process::{Local, Mutex, OwnFile, maps};

use super::message::{Failure, Job, Outcome, Task};
use super::protocol::{receive, send};
use super::server::STARTED;
use super::start::zeusm_cpu_compiler;
use super::supervisor::split_status;
use crate::opencl::{self, Runtime};
use crate::system::interrupt;
use crate::system::library::library_of;

/// How much of a crashed compiler's output is reported, in bytes.
const MAX_OUTPUT: usize = 4096;

/// How often a thread that waits for a build looks for Ctrl-C.
const BETWEEN_LOOKS: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};

/// After how long a build is announced.
const SILENCE: Duration = Duration::from_secs(10);

/// The compiler process, once it was started. A fork's child starts its own, since the two must not share a socket.
static COMPILER: Local<Mutex<Option<Compiler>>> = Local::new();

/// Builds a module to the device's own code. A line on the standard error says that `what` is being built if it takes long.
///
/// # Errors
/// See [`Failure`].
pub fn compile(job: &Job, what: &str, is_right_without_optimisation: bool) -> Outcome {
    let task = Task::Build(job.clone());
    execute(task, what, is_right_without_optimisation)
}

/// Translates OpenCL C to SPIR-V, with OpenCL's build options.
///
/// # Errors
/// See [`Failure`].
pub fn translate(source: &str, options: &str) -> Outcome {
    let task = Task::Translate(source.to_owned(), options.to_owned());
    execute(task, "a program in OpenCL C", true)
}

/// Has the process do a task; one at a time.
///
/// A compiler that has died between two tasks is replaced. One that dies in a task is replaced once: it may have been killed, or
/// an optimisation may have crashed or not have ended, which the second attempt goes without.
fn execute(mut task: Task, what: &str, is_right_without_optimisation: bool) -> Outcome {
    let mut place = COMPILER.get_or_default().lock();
    let mut failure =
        Failure::Unavailable("the compiling process ends as soon as it starts".to_owned());
    let mut tries = 0;
    let mut notice = Notice {
        begin: Instant::now(),
        what: Some(what),
    };
    while tries < 2 {
        let is_new = place.is_none();
        let compiler = match &mut *place {
            Some(compiler) => compiler,
            empty => empty
                .insert(Compiler::start().map_err(|why| Failure::Unavailable(why.to_string()))?),
        };
        let has_begun = compiler.begin(&task, &mut notice).is_ok();
        tries += usize::from(has_begun || is_new);
        if has_begun && let Ok(outcome) = receive(&mut Link(&compiler.socket, &mut notice)) {
            return outcome;
        }
        if interrupt::is_pending() {
            *place = None;
            return Err(Failure::Interrupted);
        }
        let ended = place.take().map(|compiler| compiler.exit_report());
        if let (true, Some((status, output))) = (has_begun, ended) {
            let words = status.map_or("no exit status".to_owned(), |status| status.to_string());
            failure = Failure::Crashed(format!("{words}\n{output}").trim_end().to_owned());
            let is_killed = status.and_then(|status| status.signal()) == Some(libc::SIGKILL);
            if !is_killed {
                if !is_right_without_optimisation {
                    break;
                }
                without_optimisation(&mut task);
            }
        }
    }
    Err(failure)
}

/// Has the compiler do a task without optimisation.
fn without_optimisation(task: &mut Task) {
    let off = |options: &mut String| options.push_str(" -cl-opt-disable");
    match task {
        Task::Build(job) => job.iter_mut().for_each(|unit| off(&mut unit.options)),
        Task::Translate(_, options) => off(options),
    }
}

/// Describes which step of starting the compiler process failed, with advice.
fn failed<E: Into<io::Error>>(step: &'static str) -> impl Fn(E) -> io::Error {
    move |error| {
        let error = error.into();
        let advice = match error.raw_os_error() {
            Some(libc::EPERM | libc::EACCES | libc::ENOSYS) => {
                "a filter of system calls (seccomp, as in a container) or a security module forbids it: allow the call"
            }
            Some(libc::EMFILE | libc::ENFILE) => {
                "there are too many open files: close some, or raise `ulimit -n`"
            }
            Some(libc::EAGAIN) => "there are too many processes: end some, or raise `ulimit -u`",
            _ => "modules are built in a process of their own, which needs it",
        };
        io::Error::other(format!(
            "the process that builds modules cannot be started: {step} answered {error}: {advice}"
        ))
    }
}

/// The socket to the process, and what the process writes to its standard output and error. The process is no child of
/// this one, and ends when the socket does.
struct Compiler {
    socket: OwnFile,
    output: OwnFile,
}

impl Compiler {
    fn start() -> io::Result<Self> {
        let copied = "fcntl(F_DUPFD_CLOEXEC)";
        let own = |file: OwnedFd| OwnFile::new(file.into()).map_err(failed(copied));
        let (ours, theirs) = UnixStream::pair().map_err(failed("socketpair"))?;
        let socket = own(ours.into())?;
        let output =
            memfd_create("zeusm-compiler", MemfdFlags::CLOEXEC).map_err(failed("memfd_create"))?;
        // Output is appended, also after the file was truncated.
        fcntl_setfl(&output, OFlags::APPEND).map_err(failed("fcntl"))?;
        let output = own(output)?;
        // The search for the OpenCL library depends on the libraries in this process, so its result is passed on.
        let opencl = Runtime::get().map_err(io::Error::other)?.path();
        let copy = || {
            let file = output.get().ok_or_else(lost)?;
            file.try_clone().map_err(failed(copied))
        };
        let mut first = Command::new(dynamic_linker()?)
            .arg(library()?)
            .env(opencl::LIBRARY_VARIABLE, opencl)
            // Ctrl-C is for the processes of the program's group, and the program may handle it and continue.
            .process_group(0)
            .stdin(OwnedFd::from(theirs))
            .stdout(copy()?)
            .stderr(copy()?)
            .spawn()
            .map_err(failed("clone and execve of the dynamic linker"))?;
        // It ends as soon as it has forked (`supervisor`). A handler of the program that waits for any child may have
        // got its status, which is not needed.
        let _ = first.wait();
        Ok(Self { socket, output })
    }

    /// Sends a task; an error means that the process did not receive all of it.
    fn begin(&self, task: &Task, notice: &mut Notice) -> io::Result<()> {
        self.output.get().ok_or_else(lost)?.set_len(0)?;
        let mut link = Link(&self.socket, notice);
        send(&mut link, task)?;
        let mut started = [0];
        link.read_exact(&mut started)?;
        if started == [STARTED] {
            Ok(())
        } else {
            Err(io::ErrorKind::InvalidData.into())
        }
    }

    /// The exit status, if it is known, and the last output of a process that has ended.
    fn exit_report(&self) -> (Option<ExitStatus>, String) {
        let mut bytes = vec![0; MAX_OUTPUT];
        let read = self.output.get().and_then(|file| {
            let begin = file
                .metadata()
                .ok()?
                .len()
                .saturating_sub(MAX_OUTPUT as u64);
            file.read_at(&mut bytes, begin).ok()
        });
        let (output, status) = split_status(&bytes[..read.unwrap_or(0)]);
        (status, String::from_utf8_lossy(output).into_owned())
    }
}

impl Drop for Compiler {
    fn drop(&mut self) {
        // Ends the process, even if the child of a fork has the socket, too.
        if let Some(socket) = self.socket.get() {
            let _ = shutdown(socket, Shutdown::Both);
        }
    }
}

/// The program has closed the descriptor, and may have a file of its own by that number.
fn lost() -> io::Error {
    io::Error::other("the program has closed a descriptor of the process that builds modules")
}

/// The announcement of a build that takes long.
struct Notice<'a> {
    begin: Instant,
    /// `None` once it was announced.
    what: Option<&'a str>,
}

impl Notice<'_> {
    fn give_once_due(&mut self) {
        if self.begin.elapsed() < SILENCE {
            return;
        }
        if let Some(what) = self.what.take() {
            // The reader of the standard error may be gone.
            let _ = writeln!(
                io::stderr(),
                "zeusm CPU runtime: the build of {what} takes more than {} seconds",
                SILENCE.as_secs()
            );
        }
    }
}

/// Reads from and writes to the socket, as long as it is the runtime's. Reads end once Ctrl-C is pressed, and writes cause no
/// SIGPIPE when the other end is closed.
struct Link<'a, 'b>(&'a OwnFile, &'a mut Notice<'b>);

impl Read for Link<'_, '_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let mut socket = self.0.get().ok_or_else(lost)?;
        let mut polled = [PollFd::new(socket, PollFlags::IN)];
        while polled[0].revents().is_empty() {
            if interrupt::is_pending() {
                return Err(io::Error::other("interrupted"));
            }
            let _ = poll(&mut polled, Some(&BETWEEN_LOOKS));
            self.1.give_once_due();
        }
        socket.read(bytes)
    }
}

impl Write for Link<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let socket = self.0.get().ok_or_else(lost)?;
        Ok(net::send(socket, bytes, SendFlags::NOSIGNAL)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The dynamic linker of this process, which starts the library as a program.
fn dynamic_linker() -> io::Result<PathBuf> {
    // SAFETY: reads a number of the auxiliary vector; 0 when it is missing.
    let base = unsafe { libc::getauxval(libc::AT_BASE) };
    let found = usize::try_from(base)
        .ok()
        .filter(|&base| base != 0)
        .and_then(maps::file_at);
    found.ok_or_else(|| io::Error::other("this process has no dynamic linker"))
}

/// This library's file, if it is linked so that it can be run.
///
/// In any other program that holds this code (a test, say) the entry point is that program's own, and starting it
/// would run that program again.
fn library() -> io::Result<PathBuf> {
    /// Where an ELF header of 64 bits has the entry point.
    const ENTRY: usize = 24;
    let entry = zeusm_cpu_compiler as *const () as usize;
    let missing =
        || io::Error::other("modules are built by the shared library libzeusm_cpu.so only");
    let path = maps::file_at(entry).ok_or_else(missing)?;
    let base = library_of(entry).1.ok_or_else(missing)?;
    let mut header = [0; ENTRY + 8];
    File::open(&path)
        .and_then(|mut file| file.read_exact(&mut header))
        .map_err(|error| {
            let path = path.display();
            io::Error::other(format!(
                "the process that builds modules cannot be started: its file, {path}, cannot be read: {error}: \
                 if it was replaced, restart this process"
            ))
        })?;
    let offset = header
        .last_chunk()
        .map_or(0, |bytes| u64::from_le_bytes(*bytes));
    if base.checked_add(usize::try_from(offset).unwrap_or(0)) == Some(entry) {
        Ok(path)
    } else {
        Err(missing())
    }
}
