//! Steps over an instruction whose access was reported: its pages are open for that instruction only, so that other
//! mistakes with the same allocation are found, too.
//!
//! The fault handler opens the pages and sets the processor's trap flag for the thread; after the instruction, the handler
//! of `SIGTRAP` closes them again. An instruction may fault several times before it completes, if it accesses several pages.
//! Where a step is not possible, the pages stay open until the next call: under a debugger, and in threads that block `SIGTRAP`.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

use libc::{c_int, c_void, siginfo_t, ucontext_t};
use rustix::fs::{Mode, OFlags};
use zeusm_process::AtFork;

use super::chain::{Chain, levels};
use super::table;

/// As many pages can be open for an instruction; further ones are left open.
const MOST: usize = 64;

/// As many traps of one instruction are waited for: those that repeat themselves, as copies do, trap each time.
const MOST_TRAPS: usize = 10_000;

/// Whether pages are open until the next call.
static IS_LEFT: AtomicBool = AtomicBool::new(false);

/// The pages that are open until the instruction of a thread is complete.
#[derive(Clone, Copy)]
struct Step {
    /// An address in each page.
    pages: [usize; MOST],
    count: usize,
    instruction: usize,
    traps: usize,
}

thread_local! {
    static STEP: Cell<Step> = const {
        Cell::new(Step {
            pages: [0; MOST],
            count: 0,
            instruction: 0,
            traps: 0,
        })
    };
}

/// The handlers of `SIGTRAP`.
static HANDLERS: Chain = Chain::new(libc::SIGTRAP, libc::SA_RESTART, levels!(handle));

/// The lock of the handlers before this one, which a fork holds so that it copies a consistent state.
pub fn at_fork() -> &'static dyn AtFork {
    HANDLERS.at_fork()
}

/// Has the page of `address`, which is open, closed after the instruction that faulted, if that is possible.
///
/// # Safety
/// `context` is that of the fault, in its handler.
pub unsafe fn begin(address: usize, context: *mut ucontext_t) {
    let mut step = STEP.get();
    // SAFETY: the caller vouches for the context.
    let (is_stepping, is_blocked, instruction) = unsafe {
        (
            trap_flag::is_set(context),
            libc::sigismember(&(*context).uc_sigmask, libc::SIGTRAP) != 0,
            trap_flag::instruction(context),
        )
    };
    if !is_stepping {
        // A step that was left by a jump, such as an exception's.
        step.end(close);
    }
    if !is_blocked && step.count < MOST && !is_traced() {
        step.pages[step.count] = address;
        step.count += 1;
        (step.instruction, step.traps) = (instruction, 0);
        HANDLERS.stay_installed();
        // SAFETY: as above.
        unsafe { trap_flag::set(context, true) };
    } else {
        leave(address);
    }
    STEP.set(step);
}

/// Leaves the page of `address` open until the next call.
pub fn leave(address: usize) {
    if let Some(watch) = table::find(address) {
        watch.leave_open();
    }
    // A call that comes before this closes nothing, and the one after it does.
    IS_LEFT.store(true, Ordering::Release);
}

/// Closes the page of `address`.
fn close(address: usize) {
    if let Some(watch) = table::find(address) {
        watch.close_again();
    }
}

/// Level Zero was called: closes the pages that were left open until now.
pub fn note_call() {
    if IS_LEFT.load(Ordering::Relaxed) && IS_LEFT.swap(false, Ordering::AcqRel) {
        table::close_left();
    }
}

impl Step {
    /// After a trap at `instruction`: whether it is still the same one, which repeats itself. After many traps, its pages are left
    /// open.
    fn goes_on(&mut self, instruction: usize) -> bool {
        let is_same = instruction == self.instruction;
        if is_same && self.traps < MOST_TRAPS {
            self.traps += 1;
            return true;
        }
        self.end(if is_same { leave } else { close });
        false
    }

    /// Ends the step, and does something about the address of each of its pages.
    fn end(&mut self, about: fn(usize)) {
        let count = std::mem::take(&mut self.count);
        self.pages[..count].iter().copied().for_each(about);
    }
}

/// Whether a debugger traces this process: it would stop at each trap.
fn is_traced() -> bool {
    let Ok(file) = rustix::fs::open(c"/proc/self/status", OFlags::CLOEXEC, Mode::empty()) else {
        return false;
    };
    let mut text = [0; 1024];
    let read = rustix::io::read(file, &mut text).unwrap_or(0);
    let text = &text[..read];
    let name = b"TracerPid:\t";
    let found = text.windows(name.len()).position(|it| it == name);
    found.is_some_and(|at| text.get(at + name.len()) != Some(&b'0'))
}

/// The handler of the signal for steps.
///
/// # Safety
/// For the kernel's call with the description and the context of a signal.
unsafe extern "C" fn handle<const LEVEL: usize>(
    _: c_int,
    info: *mut siginfo_t,
    context: *mut c_void,
) {
    // SAFETY: the C library's errno of this thread, and the kernel's valid pointers.
    let (errno, code, is_stepping) = unsafe {
        (
            *libc::__errno_location(),
            (*info).si_code,
            trap_flag::is_set(context.cast()),
        )
    };
    // By the flag, not by `TRAP_TRACE`: hypervisors may lose that code. No other trap comes while an instruction steps.
    if code > 0
        && is_stepping
        && let mut step = STEP.get()
        && step.count > 0
    {
        // SAFETY: the context is the kernel's, and the errno as before.
        unsafe {
            let goes_on = step.goes_on(trap_flag::instruction(context.cast()));
            STEP.set(step);
            trap_flag::set(context.cast(), goes_on);
            *libc::__errno_location() = errno;
        }
        return;
    }
    // SAFETY: the arguments are those of this handler.
    unsafe { HANDLERS.pass_on(LEVEL, info, context) };
}

/// The processor's flag by which it traps after each instruction.
mod trap_flag {
    use super::ucontext_t;

    const FLAG: i64 = 1 << 8;

    /// # Safety
    /// `context` is that of a signal handler.
    pub unsafe fn is_set(context: *mut ucontext_t) -> bool {
        // SAFETY: the caller vouches for the context.
        unsafe { (*context).uc_mcontext.gregs[libc::REG_EFL as usize] & FLAG != 0 }
    }

    /// The instruction that is executed next.
    ///
    /// # Safety
    /// `context` is that of a signal handler.
    pub unsafe fn instruction(context: *mut ucontext_t) -> usize {
        // SAFETY: the caller vouches for the context.
        unsafe { (*context).uc_mcontext.gregs[libc::REG_RIP as usize] as usize }
    }

    /// # Safety
    /// `context` is that of a signal handler.
    pub unsafe fn set(context: *mut ucontext_t, is_set: bool) {
        // SAFETY: the caller vouches for the context.
        let flags = unsafe { &mut (*context).uc_mcontext.gregs[libc::REG_EFL as usize] };
        *flags = if is_set {
            *flags | FLAG
        } else {
            *flags & !FLAG
        };
    }
}
