//! Steps over an instruction whose access was reported: its pages are open for that instruction only, so that other
//! mistakes with the same allocation are found, too.
//!
//! The fault handler opens the pages and sets the processor's trap flag for the thread; after the instruction, the handler
//! of `SIGTRAP` closes them again. An instruction may fault several times before it completes, if it accesses several pages.
//! Where a step is not possible, the pages stay open until the next call: on other processors than x86-64,
//! under a debugger, and in threads that block `SIGTRAP`.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};

use libc::{c_int, c_void, siginfo_t, ucontext_t};
use rustix::fs::{Mode, OFlags};
use zeusm_process::AtFork;

use super::chain::{Chain, levels};
use super::{table, threads};

/// As many pages can be open for steps at once; further ones are left open.
const MOST: usize = 64;

/// As many traps of one instruction are waited for: those that repeat themselves, as copies do, trap each time.
const MOST_TRAPS: usize = 10_000;

/// A page that is open until the instruction of a thread is complete; the thread is 0 if there is none.
struct Open {
    thread: AtomicI32,
    address: AtomicUsize,
    instruction: AtomicUsize,
    traps: AtomicUsize,
}

/// Whether pages are open until the next call.
static IS_LEFT: AtomicBool = AtomicBool::new(false);

static OPEN: [Open; MOST] = [const {
    Open {
        thread: AtomicI32::new(0),
        address: AtomicUsize::new(0),
        instruction: AtomicUsize::new(0),
        traps: AtomicUsize::new(0),
    }
}; MOST];

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
    // SAFETY: the caller vouches for the context.
    let is_possible = cfg!(target_arch = "x86_64")
        && unsafe { libc::sigismember(&(*context).uc_sigmask, libc::SIGTRAP) } == 0
        && !is_traced();
    let thread = threads::thread_id();
    // SAFETY: as above.
    if unsafe { !trap_flag::is_set(context) } {
        // A step that was left by a jump, such as an exception's.
        close(thread);
    }
    // SAFETY: as above.
    if is_possible && note(thread, address, unsafe { trap_flag::instruction(context) }) {
        HANDLERS.stay_installed();
        // SAFETY: as above.
        unsafe { trap_flag::set(context, true) };
    } else {
        leave(address);
    }
}

/// Leaves the page of `address` open until the next call.
pub fn leave(address: usize) {
    if let Some(watch) = table::find(address) {
        watch.leave_open();
    }
    // A call that comes before this closes nothing, and the one after it does.
    IS_LEFT.store(true, Ordering::Release);
}

/// Level Zero was called: closes the pages that were left open until now.
pub fn note_call() {
    if IS_LEFT.load(Ordering::Relaxed) && IS_LEFT.swap(false, Ordering::AcqRel) {
        table::close_left();
    }
}

fn note(thread: i32, address: usize, instruction: usize) -> bool {
    let free = OPEN.iter().find(|open| {
        let (success, failure) = (Ordering::AcqRel, Ordering::Relaxed);
        let taken = open.thread.compare_exchange(0, -thread, success, failure);
        taken.is_ok()
    });
    if let Some(open) = free {
        open.address.store(address, Ordering::Relaxed);
        open.instruction.store(instruction, Ordering::Relaxed);
        open.traps.store(0, Ordering::Relaxed);
        open.thread.store(thread, Ordering::Release);
    }
    free.is_some()
}

/// Closes the pages of a thread's step.
fn close(thread: i32) {
    end(thread, |address| {
        if let Some(watch) = table::find(address) {
            watch.close_again(address);
        }
    });
}

/// Ends a thread's step, and does something about the address of each of its pages.
fn end(thread: i32, about: impl Fn(usize)) {
    let own = |open: &&Open| open.thread.load(Ordering::Acquire) == thread;
    for open in OPEN.iter().filter(own) {
        let address = open.address.load(Ordering::Relaxed);
        open.thread.store(0, Ordering::Release);
        about(address);
    }
}

/// After a trap of a thread: whether its instruction repeats itself and is not complete. After many traps, its pages are
/// left open.
fn repeats(thread: i32, instruction: usize) -> bool {
    let own = |open: &&Open| open.thread.load(Ordering::Acquire) == thread;
    let Some(open) = OPEN.iter().find(own) else {
        return false;
    };
    let is_same = open.instruction.load(Ordering::Relaxed) == instruction;
    if is_same && open.traps.fetch_add(1, Ordering::Relaxed) == MOST_TRAPS {
        end(thread, leave);
        return false;
    }
    is_same
}

/// Forgets the steps of the parent, in the child of a fork.
pub fn child() {
    OPEN.iter()
        .for_each(|open| open.thread.store(0, Ordering::Relaxed));
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
    /// `TRAP_TRACE`: a step.
    const STEP: c_int = 2;
    // SAFETY: the C library's errno of this thread, and the kernel's valid pointers.
    let (errno, code) = unsafe { (*libc::__errno_location(), (*info).si_code) };
    let thread = threads::thread_id();
    let is_step = code == STEP
        && OPEN
            .iter()
            .any(|open| open.thread.load(Ordering::Acquire) == thread);
    if is_step {
        // SAFETY: the context is the kernel's.
        let instruction = unsafe { trap_flag::instruction(context.cast()) };
        let goes_on = repeats(thread, instruction);
        if !goes_on {
            close(thread);
        }
        // SAFETY: as above, and the errno as before.
        unsafe {
            trap_flag::set(context.cast(), goes_on);
            *libc::__errno_location() = errno;
        }
        return;
    }
    // SAFETY: the arguments are those of this handler.
    unsafe { HANDLERS.pass_on(LEVEL, info, context) };
}

/// The processor's flag by which it traps after each instruction.
#[cfg(target_arch = "x86_64")]
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

/// No flag is known here.
#[cfg(not(target_arch = "x86_64"))]
mod trap_flag {
    use super::ucontext_t;

    /// # Safety
    /// None is needed.
    pub unsafe fn is_set(_: *mut ucontext_t) -> bool {
        false
    }

    /// # Safety
    /// None is needed.
    pub unsafe fn instruction(_: *mut ucontext_t) -> usize {
        0
    }

    /// # Safety
    /// None is needed.
    pub unsafe fn set(_: *mut ucontext_t, _: bool) {}
}
