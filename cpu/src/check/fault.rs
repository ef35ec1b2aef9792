//! The handler of faults at watched memory.
//!
//! The fault is synchronous: it happens at an instruction that accesses an allocation or its guard pages. So the thread is in no
//! function of the C library or the dynamic linker that the handler could disturb, nor in one of the checker that holds a lock,
//! and the handler may allocate memory and describe what it finds. It opens the pages, so that the program goes on. Faults
//! elsewhere are passed on to the handler that the program had before.

use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;

use libc::{c_int, c_void, siginfo_t, ucontext_t};
use zeusm_process::{AtFork, Local, Mutex};

use super::chain::{Chain, levels};
use super::finding::{Finding, Kind};
use super::repeats::{Answer, Repeats};
use super::stack::Stack;
use super::watch::{Access, Watch};
use super::{commands, report, step, table, threads};

/// The accesses that were reported last. A child of a fork lacks the threads that may have had the lock.
static REPEATS: Local<Mutex<Repeats>> = Local::new();

/// The handlers of `SIGSEGV`.
static HANDLERS: Chain = Chain::new(libc::SIGSEGV, 0, levels!(handle));

/// The lock of the handlers before this one, which a fork holds so that it copies a consistent state.
pub fn at_fork() -> &'static dyn AtFork {
    HANDLERS.at_fork()
}

/// Installs the handler, also if another one has taken its place; the compiler of the OpenCL runtime has such a handler.
pub fn stay_installed() {
    HANDLERS.stay_installed();
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

/// Opens the page, and reports the access unless it is allowed. Returns whether the page is open.
///
/// # Safety
/// `context` is that of the fault.
unsafe fn admit(watch: Arc<Watch>, address: usize, context: *mut ucontext_t) -> bool {
    let by_device = threads::executes_device_code();
    let access = watch.access(address, by_device);
    let (kind, what) = match access {
        Access::Allowed => return true,
        Access::Pending if commands::writing(&watch, address).is_none() => return true,
        Access::Pending => (
            Kind::Race,
            "memory that a command may write, before it has waited for that command",
        ),
        Access::Host => (Kind::HostAccess, "device memory"),
        Access::Outside => (Kind::OutOfBounds, "memory outside of an allocation"),
        Access::Freed => (Kind::UseAfterFree, "freed memory"),
        Access::Refused => {
            refuse();
            return false;
        }
    };
    // SAFETY: the caller vouches for the context.
    let (instruction, is_write) = unsafe { registers(context) };
    let stack = Stack::behind(instruction);
    let id = watch.id;
    let answer = {
        let mut repeats = REPEATS.get_or_default().lock();
        repeats.decide((access, is_write, by_device, id, stack.callers()))
    };
    match answer {
        Answer::Report => {
            let who = if by_device { "device code" } else { "the host" };
            let does = if is_write { "writes to" } else { "reads" };
            let related = if by_device {
                commands::kernels(&watch)
            } else {
                commands::writing(&watch, address).into_iter().collect()
            };
            let message = format!("{who} {does} {what}");
            let finding = Finding::at(kind, message, stack, threads::thread_id());
            let finding = finding.about(address, Some(watch));
            let finding = related.into_iter().fold(finding, |finding, (what, stack)| {
                finding.with(format!("in flight: {what}, submitted at"), stack)
            });
            // Whatever happens here, the program goes on.
            let _ = panic::catch_unwind(AssertUnwindSafe(|| report::add(finding)));
        }
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

/// Says why the program cannot go on.
fn refuse() {
    const TEXT: &[u8] = b"zeusm check: the system opens no more pages; raise vm.max_map_count\n";
    let _ = rustix::io::write(rustix::stdio::stderr(), TEXT);
}

/// The address of the instruction, and whether it writes.
///
/// # Safety
/// `context` is that of a fault.
unsafe fn registers(context: *const ucontext_t) -> (usize, bool) {
    // SAFETY: the caller vouches for the context.
    let registers = unsafe { &(*context).uc_mcontext.gregs };
    let error = registers[libc::REG_ERR as usize];
    (registers[libc::REG_RIP as usize] as usize, error & 2 != 0)
}
