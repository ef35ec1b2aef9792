//! The handlers of a signal that the program had before the checker's, and how a signal is passed on to them.
//!
//! The program may install a handler over the checker's, whose own is then installed over that one in turn. Each handler
//! of the program may restore what it found: it gives the signal up, as `faulthandler` and LLVM's handler do. The checker
//! has a function for each handler below it, its level, so that what is restored says how far the program is, and nothing
//! is remembered from one signal to the next: a handler that has resolved a fault, by a return or a jump, is called again.
//!
//! A handler that installs itself unless it is installed finds the checker's, and passes signals on to the very level that
//! calls it. The signal goes to the level below then ([`Calls`]).

use std::mem::{self, MaybeUninit};
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

use libc::{c_int, c_void, siginfo_t};
use zeusm_process::{AtFork, ForkLock};

use crate::system::signals;

/// The type of a handler with `SA_SIGINFO`.
pub type Handler = unsafe extern "C" fn(c_int, *mut siginfo_t, *mut c_void);

/// As many levels there are. The first is that of the default action.
pub const LEVELS: usize = 8;

/// The checker's handlers of a signal by their levels, from a function with the level as its parameter.
macro_rules! levels {
    ($handle:ident) => {
        [
            $handle::<0>,
            $handle::<1>,
            $handle::<2>,
            $handle::<3>,
            $handle::<4>,
            $handle::<5>,
            $handle::<6>,
            $handle::<7>,
        ]
    };
}
pub(super) use levels;

/// The handlers of a signal.
pub struct Chain {
    signal: c_int,
    /// The flags of the checker's handlers.
    flags: c_int,
    own: [Handler; LEVELS],
    /// What the handlers of the levels pass the signal on to. A handler's place is for ever.
    before: [Before; LEVELS],
    /// How many places of `before` are taken.
    count: AtomicUsize,
    /// Held while a handler is installed. A handler of the signal must not wait for it.
    changes: ForkLock<()>,
}

/// A handler of the program, or the default action.
struct Before {
    handler: AtomicUsize,
    flags: AtomicI32,
}

impl Chain {
    /// No handler is installed yet.
    pub const fn new(signal: c_int, flags: c_int, own: [Handler; LEVELS]) -> Self {
        Self {
            signal,
            flags,
            own,
            before: [const {
                Before {
                    handler: AtomicUsize::new(libc::SIG_DFL),
                    flags: AtomicI32::new(0),
                }
            }; LEVELS],
            count: AtomicUsize::new(1),
            changes: ForkLock::new(()),
        }
    }

    /// The lock of changes, which a fork holds so that it copies a consistent state.
    pub fn at_fork(&'static self) -> &'static dyn AtFork {
        &self.changes
    }

    /// Installs a handler of the checker, unless one is.
    pub fn stay_installed(&self) {
        let _changes = self.changes.lock();
        self.cover();
    }

    /// Installs the checker's handler over that of the program, if there is one. The caller has the lock.
    fn cover(&self) {
        let Some(current) = signals::action(self.signal) else {
            return;
        };
        let is_own = |own: &Handler| *own as usize == current.sa_sigaction;
        if !self.own.iter().any(is_own) {
            self.install(self.level(&current));
        }
    }

    /// The level whose handler passes on to `action`. The last one serves for those that find no place. The caller has the
    /// lock.
    fn level(&self, action: &libc::sigaction) -> usize {
        let (handler, flags) = (action.sa_sigaction, action.sa_flags);
        let count = self.count.load(Ordering::Relaxed);
        let known = self.before[..count].iter().position(|it| {
            let is_same = it.handler.load(Ordering::Relaxed) == handler;
            is_same && (handler == libc::SIG_DFL || it.flags.load(Ordering::Relaxed) == flags)
        });
        if let Some(level) = known {
            return level;
        }
        if count == LEVELS {
            return LEVELS - 1;
        }
        self.before[count].flags.store(flags, Ordering::Relaxed);
        self.before[count].handler.store(handler, Ordering::Release);
        self.count.store(count + 1, Ordering::Release);
        count
    }

    fn install(&self, level: usize) {
        let mut action = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: zeros are a valid action; the handler has the type that SA_SIGINFO demands. Without SA_ONSTACK it runs on
        // the thread's own stack, as alternative stacks are too small to unwind.
        unsafe {
            let action = action.assume_init_mut();
            action.sa_sigaction = self.own[level] as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_NODEFER | self.flags;
            libc::sigaction(self.signal, action, ptr::null_mut());
        }
    }

    /// Passes the signal on to what was there before the checker's handler of a level, as the kernel would; if that passes the
    /// signal on to this level, to what was there before the level below.
    ///
    /// # Safety
    /// The arguments after the level are those of a handler of the signal.
    pub unsafe fn pass_on(&self, level: usize, info: *mut siginfo_t, context: *mut c_void) {
        // SAFETY: the kernel passes a valid pointer.
        let is_sent = unsafe { (*info).si_code <= 0 };
        // SAFETY: as above.
        let calls = unsafe { Calls::of(info) };
        let calling = calls.levels();
        // The lowest level has no handler that it could be calling.
        let is_idle = |level: &usize| calling & 1 << level == 0;
        let level = (0..=level).rev().find(is_idle).unwrap_or(0);
        let before = &self.before[level];
        let handler = before.handler.load(Ordering::Acquire);
        let flags = before.flags.load(Ordering::Relaxed);
        if handler == libc::SIG_IGN && is_sent {
            return;
        }
        if handler == libc::SIG_DFL || handler == libc::SIG_IGN {
            return self.end(is_sent);
        }
        if flags & libc::SA_RESETHAND != 0 {
            self.install(0);
        }
        calls.set(calling | 1 << level);
        // SAFETY: the program installed it with the type that its flags say, and the arguments are valid.
        unsafe {
            if flags & libc::SA_SIGINFO != 0 {
                mem::transmute::<usize, Handler>(handler)(self.signal, info, context);
            } else {
                type Plain = unsafe extern "C" fn(c_int);
                mem::transmute::<usize, Plain>(handler)(self.signal);
            }
        }
        calls.set(calling);
        // It may have restored or installed another action: that is what the signal is passed on to if it comes again. This
        // thread may have the lock if the signal was sent; its holder covers the action.
        if let Some(_changes) = self.changes.try_write() {
            self.cover();
        }
    }

    /// Ends the process by the default action. The instruction of a fault faults again; a trap, or a signal that a process
    /// sent (`kill`), does not come again by itself.
    fn end(&self, is_sent: bool) {
        // SAFETY: the signal has this default action, and this thread receives it, as its handler does not block it.
        unsafe {
            libc::signal(self.signal, libc::SIG_DFL);
            if is_sent || self.signal == libc::SIGTRAP {
                libc::raise(self.signal);
            }
        }
    }
}

/// The levels that are calling their handlers for a signal, by bits.
///
/// They are noted in the last bytes of the signal's information, which no layout of it uses and which the kernel zeroes for
/// each signal (its `copy_siginfo_to_user`). So a handler that jumps leaves nothing behind, and a fault in a handler is a
/// signal of its own.
struct Calls(*mut u64);

impl Calls {
    /// Tells a note from what else may be in information that is not the kernel's.
    const MARK: u64 = 0x7a65_7573_6d63 << LEVELS;

    /// The levels of a signal.
    ///
    /// # Safety
    /// `info` is valid while the result lives.
    unsafe fn of(info: *mut siginfo_t) -> Self {
        const LAST: usize = size_of::<siginfo_t>() / size_of::<u64>() - 1;
        // SAFETY: the bytes are in the information.
        Self(unsafe { info.cast::<u64>().add(LAST) })
    }

    fn levels(&self) -> u64 {
        // SAFETY: the information is valid and aligned, and of this thread.
        let note = unsafe { self.0.read() };
        let levels = note ^ Self::MARK;
        if levels >> LEVELS == 0 { levels } else { 0 }
    }

    fn set(&self, levels: u64) {
        // SAFETY: as above.
        unsafe { self.0.write(Self::MARK | levels) };
    }
}
