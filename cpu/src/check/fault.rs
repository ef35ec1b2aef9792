//! The handler of faults at watched memory.
//!
//! The fault is synchronous: it happens at an instruction that accesses an allocation or its guard pages, so the thread
//! is in no function of the C library that such a handler could disturb, and holds no lock of the checker. All the same
//! the handler allocates nothing: it opens the pages, so that the program goes on, and leaves a finding to a thread that
//! resolves and writes it, while the faulting thread waits. Faults elsewhere are passed on to the handler that the
//! program had before.

use std::mem::{self, MaybeUninit};
use std::panic::{self, AssertUnwindSafe};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;

use libc::{c_int, c_void, siginfo_t, ucontext_t};
use rustix::thread::futex;
use zeusm_process::{AtFork, Local, Mutex};

use super::chain::{Chain, levels};
use super::finding::{Finding, Kind};
use super::repeats::{Answer, Repeats};
use super::stack::{DEEPEST, Stack, native_frames};
use super::watch::{Access, Watch};
use super::{commands, python, report, say, step, table, threads};

/// A fault that the reporter turns into a finding.
struct Fault {
    access: Access,
    address: usize,
    is_write: Option<bool>,
    by_device: bool,
    watch: Option<Arc<Watch>>,
    native: [usize; DEEPEST],
    depth: usize,
    python: [u8; python::LONGEST],
    length: usize,
    thread: i32,
}

impl Default for Fault {
    fn default() -> Self {
        Self {
            access: Access::Allowed,
            address: 0,
            is_write: None,
            by_device: false,
            watch: None,
            native: [0; DEEPEST],
            depth: 0,
            python: [0; python::LONGEST],
            length: 0,
            thread: 0,
        }
    }
}

/// How a thread that faults passes the fault to the thread that reports.
#[derive(Default)]
struct Handover {
    /// Serialises the threads that fault.
    turn: Mutex<()>,
    /// The fault that is being reported; one thread at a time has the lock.
    fault: Mutex<Fault>,
    /// The accesses that were reported last.
    repeats: Mutex<Repeats>,
    /// Whether there is a fault to report.
    state: AtomicU32,
    /// Whether there is a thread that reports.
    is_served: AtomicBool,
}

/// `Handover::state` of none, which is the default.
const IDLE: u32 = 0;
const REPORTED: u32 = 1;

/// A child of a fork lacks the threads that may have been in the middle of it. [`start_reporter`] creates it.
static HANDOVER: Local<Handover> = Local::new();

/// The handlers of `SIGSEGV`.
static HANDLERS: Chain = Chain::new(libc::SIGSEGV, 0, levels!(handle));

/// The lock of the handlers before this one, which a fork holds so that it copies a consistent state.
pub fn at_fork() -> &'static dyn AtFork {
    HANDLERS.at_fork()
}

/// Installs the handler, and starts the thread that reports.
pub fn install() {
    start_reporter();
    // The unwinder may allocate memory when it is used for the first time.
    native_frames(&mut [0; 4]);
    stay_installed();
}

/// Installs the handler again if another one has taken its place; the compiler of the OpenCL runtime has such a handler.
pub fn stay_installed() {
    HANDLERS.stay_installed();
}

/// Starts the thread that reports; the child of a fork needs one of its own.
pub fn start_reporter() {
    let handover = HANDOVER.get_or_default();
    let reporter = thread::Builder::new().name("zeusm-cpu-check".to_owned());
    let is_served = reporter.spawn(serve).is_ok();
    handover.is_served.store(is_served, Ordering::Release);
    if !is_served {
        say::line("no thread can be started, so accesses are not reported");
    }
}

/// The handler of the signal for faults.
///
/// # Safety
/// For the kernel's call with the description and the context of a signal.
unsafe extern "C" fn handle<const LEVEL: usize>(
    _: c_int,
    info: *mut siginfo_t,
    context: *mut c_void,
) {
    // SAFETY: the kernel passes valid pointers.
    let (address, code) = unsafe { ((*info).si_addr() as usize, (*info).si_code) };
    /// `SEGV_ACCERR`: the page is mapped, but may not be accessed.
    const NOT_PERMITTED: c_int = 2;
    // SAFETY: the C library's errno of this thread.
    let errno = unsafe { *libc::__errno_location() };
    let watch = (code == NOT_PERMITTED)
        .then(|| table::find(address))
        .flatten();
    // SAFETY: the context is the kernel's.
    let is_admitted = watch.is_some_and(|watch| unsafe { admit(watch, address, context.cast()) });
    if !is_admitted {
        // SAFETY: the arguments are those of this handler.
        unsafe { HANDLERS.pass_on(LEVEL, info, context) };
    }
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}

/// Opens the page, and reports the access unless it is allowed or no thread reports. Returns whether the page is open.
///
/// # Safety
/// `context` is that of the fault.
unsafe fn admit(watch: Arc<Watch>, address: usize, context: *mut ucontext_t) -> bool {
    let by_device = threads::executes_device_code();
    let access = watch.access(address, by_device);
    let is_allowed = match access {
        Access::Allowed => true,
        Access::Pending => !commands::is_written(&watch, address),
        Access::Host | Access::Outside | Access::Freed => false,
        Access::Refused => {
            refuse();
            return false;
        }
    };
    if is_allowed {
        return true;
    }
    let handover = HANDOVER.get_or_default();
    let _turn = handover.turn.lock();
    if !handover.is_served.load(Ordering::Acquire) {
        return true;
    }
    // SAFETY: the caller vouches for the context.
    match unsafe { handover.fill(access, address, by_device, watch, context) } {
        Answer::Report => handover.report(),
        Answer::Step => {}
        Answer::Open => {
            step::leave(address);
            return true;
        }
        Answer::CountAndOpen => {
            report::leave_out();
            step::leave(address);
            return true;
        }
    }
    // SAFETY: as above.
    unsafe { step::begin(address, context) };
    true
}

impl Handover {
    /// Describes a fault, and decides what is to be done about it.
    ///
    /// # Safety
    /// `context` is that of the fault.
    unsafe fn fill(
        &self,
        access: Access,
        address: usize,
        by_device: bool,
        watch: Arc<Watch>,
        context: *const ucontext_t,
    ) -> Answer {
        let mut fault = self.fault.lock();
        fault.access = access;
        fault.address = address;
        fault.by_device = by_device;
        fault.watch = Some(watch);
        fault.thread = threads::thread_id();
        // SAFETY: the caller vouches for the context.
        let (instruction, is_write) = unsafe { registers(context) };
        fault.is_write = is_write;
        let mut frames = [0; DEEPEST + 8];
        let depth = native_frames(&mut frames);
        // The frames of this handler are above that of the instruction.
        let skipped = frames[..depth].iter().position(|it| *it == instruction);
        let kept = &frames[skipped.unwrap_or(0)..depth];
        fault.depth = kept.len().min(DEEPEST);
        let depth = fault.depth;
        fault.native[..depth].copy_from_slice(&kept[..depth]);
        let mut text = mem::replace(&mut fault.python, [0; python::LONGEST]);
        fault.length = python::dump(&mut text);
        fault.python = text;
        let id = fault.watch.as_ref().map(|watch| watch.id);
        // Without the instruction: a call of `memcpy` is one access.
        let callers = &fault.native[..depth].get(1..).unwrap_or_default();
        let stack = (callers, &fault.python[..fault.length]);
        let mut repeats = self.repeats.lock();
        repeats.decide((access as u8, fault.is_write, by_device, id, stack))
    }

    /// Has the fault reported by the thread that does, and waits for it.
    fn report(&self) {
        let state = &self.state;
        state.store(REPORTED, Ordering::Release);
        let _ = futex::wake(state, futex::Flags::PRIVATE, u32::MAX >> 1);
        while state.load(Ordering::Acquire) == REPORTED {
            let _ = futex::wait(state, futex::Flags::PRIVATE, REPORTED, None);
        }
    }
}

/// Says why the program cannot go on.
fn refuse() {
    const TEXT: &[u8] = b"zeusm check: the system opens no more pages; raise vm.max_map_count\n";
    let _ = rustix::io::write(rustix::stdio::stderr(), TEXT);
}

/// The address of the instruction, and whether it writes.
///
/// # Safety
/// `context` is that of a fault.
#[cfg(target_arch = "x86_64")]
unsafe fn registers(context: *const ucontext_t) -> (usize, Option<bool>) {
    // SAFETY: the caller vouches for the context.
    let registers = unsafe { &(*context).uc_mcontext.gregs };
    let error = registers[libc::REG_ERR as usize];
    (
        registers[libc::REG_RIP as usize] as usize,
        Some(error & 2 != 0),
    )
}

/// The address of the instruction is not known here.
///
/// # Safety
/// None is needed.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn registers(_: *const ucontext_t) -> (usize, Option<bool>) {
    (0, None)
}

/// The life of the thread that reports.
fn serve() {
    block_signals();
    let Handover { fault, state, .. } = HANDOVER.get_or_default();
    loop {
        while state.load(Ordering::Acquire) == IDLE {
            let _ = futex::wait(state, futex::Flags::PRIVATE, IDLE, None);
        }
        // Whatever happens here, the thread that waits goes on.
        let _ = panic::catch_unwind(AssertUnwindSafe(|| report::add(fault.lock().finding())));
        state.store(IDLE, Ordering::Release);
        let _ = futex::wake(state, futex::Flags::PRIVATE, u32::MAX >> 1);
    }
}

/// Leaves all signals to the program's threads.
fn block_signals() {
    let mut all = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: the set is initialised by the first call.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), ptr::null_mut());
    }
}

impl Fault {
    fn finding(&mut self) -> Finding {
        let who = if self.by_device {
            "device code"
        } else {
            "the host"
        };
        let does = match self.is_write {
            Some(true) => "writes to",
            Some(false) => "reads",
            None => "accesses",
        };
        let (kind, what) = match self.access {
            Access::Freed => (Kind::UseAfterFree, "freed memory"),
            Access::Outside => (Kind::OutOfBounds, "memory outside of an allocation"),
            Access::Pending => (
                Kind::Race,
                "memory that a command may write, before it has waited for that command",
            ),
            Access::Host | Access::Allowed | Access::Refused => (Kind::HostAccess, "device memory"),
        };
        let stack = Stack::new(&self.native[..self.depth], &self.python[..self.length]);
        let related = self.watch.as_ref().map_or_else(Vec::new, |watch| {
            if self.by_device {
                commands::kernels(watch)
            } else {
                commands::writing(watch, self.address).into_iter().collect()
            }
        });
        let finding = Finding::at(kind, format!("{who} {does} {what}"), stack, self.thread)
            .about(self.address, self.watch.take());
        related.into_iter().fold(finding, |finding, (what, stack)| {
            finding.with(format!("in flight: {what}, submitted at"), stack)
        })
    }
}
