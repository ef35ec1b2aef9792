//! Programs with handlers of `SIGSEGV` and `SIGTRAP` of their own, under the checker.

use std::mem;
use std::os::unix::process::ExitStatusExt;
use std::process::Output;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

use libc::{c_int, c_void, siginfo_t};

use crate::common::{self, Context, Kind};
use crate::{faulty, process};

type Handler = extern "C" fn(c_int, *mut siginfo_t, *mut c_void);

const PAGE: usize = 4096;
/// How often a handler of the program has run.
static CALLS: AtomicUsize = AtomicUsize::new(0);
/// A page of the program.
static OWN: AtomicUsize = AtomicUsize::new(0);
/// The context that a handler jumps to.
static BACK: AtomicUsize = AtomicUsize::new(0);
/// The action that a handler restores.
static BEFORE: AtomicUsize = AtomicUsize::new(0);
/// The actions to which two handlers pass signals on.
static BELOW: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];

/// Runs an ignored test of this module under the checker.
fn run(name: &str) -> Output {
    let environment = [("ZEUSM_CHECK", "1"), ("ZEUSM_CHECK_EXIT_CODE", "0")];
    process::run(&format!("signals::{name}"), &environment)
}

fn passes(name: &str) {
    if common::direct() {
        let output = run(name);
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains("1 passed"), "{}\n{text}", output.status);
    }
}

/// The test ends by a fault, and not because it hangs.
fn faults(name: &str) {
    if common::direct() {
        let output = run(name);
        let text = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.signal(), Some(libc::SIGSEGV), "{text}");
    }
}

/// Installs a handler, and returns the action before it.
fn install(signal: c_int, handler: Handler, flags: c_int) -> libc::sigaction {
    unsafe {
        libc::alarm(60);
        let (mut action, mut before) = mem::zeroed::<(libc::sigaction, libc::sigaction)>();
        action.sa_sigaction = handler as usize;
        action.sa_flags = libc::SA_SIGINFO | flags;
        assert_eq!(
            libc::sigaction(signal, &raw const action, &raw mut before),
            0
        );
        before
    }
}

fn protect(protection: c_int) {
    let page = OWN.load(Ordering::Relaxed) as *mut c_void;
    assert_eq!(unsafe { libc::mprotect(page, PAGE, protection) }, 0);
}

/// An inaccessible page, which is not Level Zero's.
fn own_page() -> *mut c_void {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let page = unsafe { libc::mmap(ptr::null_mut(), PAGE, libc::PROT_NONE, flags, -1, 0) };
    OWN.store(page as usize, Ordering::Relaxed);
    page
}

extern "C" fn open_page(_: c_int, _: *mut siginfo_t, _: *mut c_void) {
    CALLS.fetch_add(1, Ordering::Relaxed);
    protect(libc::PROT_READ | libc::PROT_WRITE);
}

extern "C" fn jump_back(_: c_int, _: *mut siginfo_t, _: *mut c_void) {
    CALLS.fetch_add(1, Ordering::Relaxed);
    unsafe { libc::setcontext(BACK.load(Ordering::Relaxed) as *const libc::ucontext_t) };
}

/// As a handler that writes what it knows and gives up: the instruction faults again.
extern "C" fn give_up(signal: c_int, _: *mut siginfo_t, _: *mut c_void) {
    let before = BEFORE.load(Ordering::Relaxed) as *const libc::sigaction;
    unsafe { libc::sigaction(signal, before, ptr::null_mut()) };
}

/// Passes each signal on to the action that it has replaced. A process in which that goes in circles exits.
extern "C" fn pass_on<const OWN: usize>(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    const MOST_CALLS: usize = 5;
    let below = BELOW[OWN].load(Ordering::Relaxed) as *const libc::sigaction;
    unsafe {
        if CALLS.fetch_add(1, Ordering::Relaxed) == MOST_CALLS {
            libc::_exit(1);
        }
        if (*below).sa_sigaction == libc::SIG_DFL {
            libc::signal(signal, libc::SIG_DFL);
        } else {
            mem::transmute::<usize, Handler>((*below).sa_sigaction)(signal, info, context);
        }
    }
}

/// Installs [`pass_on`], unless it is.
fn stay_installed<const OWN: usize>() {
    let own: Handler = pass_on::<OWN>;
    let before = install(libc::SIGSEGV, own, 0);
    if before.sa_sigaction != own as usize {
        let before = Box::into_raw(Box::new(before));
        BELOW[OWN].store(before as usize, Ordering::Relaxed);
    }
}

/// Faults in a fault, which it resolves.
extern "C" fn fault_again(_: c_int, _: *mut siginfo_t, _: *mut c_void) {
    if CALLS.fetch_add(1, Ordering::Relaxed) == 0 {
        faulty::write(OWN.load(Ordering::Relaxed) as *mut c_void, 0);
    } else {
        protect(libc::PROT_READ | libc::PROT_WRITE);
    }
}

extern "C" fn do_nothing(_: c_int, _: *mut siginfo_t, _: *mut c_void) {}

/// Accesses the program's page and device memory in turns. The program's handler gets its own faults only.
fn fault_in_turns(fault: impl Fn()) {
    let context = Context::new();
    let memory = context.alloc(Kind::Device, 1000);
    for round in 1..4 {
        fault();
        assert_eq!(CALLS.load(Ordering::Relaxed), round);
        faulty::read(memory, 5);
        assert_eq!(CALLS.load(Ordering::Relaxed), round);
    }
    context.free(memory);
}

/// Runs `work` on a stack of its own until it ends, by a jump of [`jump_back`].
fn until_a_jump(work: extern "C" fn()) {
    let mut stack = vec![0_u8; 1 << 20];
    unsafe {
        let (mut back, mut there) = mem::zeroed::<(libc::ucontext_t, libc::ucontext_t)>();
        assert_eq!(libc::getcontext(&raw mut there), 0);
        there.uc_stack.ss_sp = stack.as_mut_ptr().cast();
        there.uc_stack.ss_size = stack.len();
        libc::makecontext(&raw mut there, work, 0);
        BACK.store(&raw mut back as usize, Ordering::Relaxed);
        assert_eq!(libc::swapcontext(&raw mut back, &raw const there), 0);
    }
}

#[test]
fn a_handler_that_resolves_faults_is_called_each_time() {
    passes("resolves");
}

#[test]
#[ignore = "run by a_handler_that_resolves_faults_is_called_each_time"]
fn resolves() {
    install(libc::SIGSEGV, open_page, 0);
    let page = own_page();
    fault_in_turns(|| {
        protect(libc::PROT_NONE);
        faulty::write(page, 0);
    });
}

#[test]
fn a_handler_that_jumps_is_called_each_time() {
    passes("jumps_from_faults");
    passes("jumps_from_traps");
}

#[test]
#[ignore = "run by a_handler_that_jumps_is_called_each_time"]
fn jumps_from_faults() {
    extern "C" fn fault() {
        faulty::write(OWN.load(Ordering::Relaxed) as *mut c_void, 0);
    }
    install(libc::SIGSEGV, jump_back, 0);
    own_page();
    fault_in_turns(|| until_a_jump(fault));
}

#[test]
#[ignore = "run by a_handler_that_jumps_is_called_each_time"]
fn jumps_from_traps() {
    extern "C" fn trap() {
        #[cfg(target_arch = "x86_64")]
        unsafe {
            std::arch::asm!("int3");
        }
        #[cfg(not(target_arch = "x86_64"))]
        unsafe {
            libc::raise(libc::SIGTRAP);
        }
    }
    install(libc::SIGTRAP, jump_back, 0);
    fault_in_turns(|| until_a_jump(trap));
}

#[test]
fn handlers_that_give_up_end_the_program() {
    faults("gives_up");
    faults("gives_up_after_level_zero");
    faults("is_called_once");
}

#[test]
#[ignore = "run by handlers_that_give_up_end_the_program"]
fn gives_up() {
    let nothing: libc::sigaction = unsafe { mem::zeroed() };
    BEFORE.store(&raw const nothing as usize, Ordering::Relaxed);
    install(libc::SIGSEGV, give_up, 0);
    let _context = Context::new();
    faulty::write(own_page(), 0);
}

/// What the handler restores is the checker's, which has been installed over it since.
#[test]
#[ignore = "run by handlers_that_give_up_end_the_program"]
fn gives_up_after_level_zero() {
    let context = Context::new();
    unsafe { libc::signal(libc::SIGSEGV, libc::SIG_DFL) };
    context.free(context.alloc(Kind::Device, 1000));
    let before = install(libc::SIGSEGV, give_up, 0);
    BEFORE.store(&raw const before as usize, Ordering::Relaxed);
    context.free(context.alloc(Kind::Device, 1000));
    faulty::write(own_page(), 0);
}

#[test]
#[ignore = "run by handlers_that_give_up_end_the_program"]
fn is_called_once() {
    install(libc::SIGSEGV, do_nothing, libc::SA_RESETHAND);
    let _context = Context::new();
    faulty::write(own_page(), 0);
}

#[test]
fn handlers_that_are_installed_again_and_pass_signals_on_end_the_program() {
    faults("passes_on_to_itself");
    faults("pass_on_to_each_other");
}

/// The next call of Level Zero has the checker's handler installed over the program's.
fn call(context: &Context) {
    context.free(context.alloc(Kind::Device, 1000));
}

#[test]
#[ignore = "run by handlers_that_are_installed_again_and_pass_signals_on_end_the_program"]
fn passes_on_to_itself() {
    let context = Context::new();
    call(&context);
    for _ in 0..2 {
        stay_installed::<0>();
        call(&context);
    }
    stay_installed::<0>();
    faulty::write(own_page(), 0);
}

#[test]
#[ignore = "run by handlers_that_are_installed_again_and_pass_signals_on_end_the_program"]
fn pass_on_to_each_other() {
    let context = Context::new();
    call(&context);
    for _ in 0..2 {
        stay_installed::<0>();
        call(&context);
        stay_installed::<1>();
        call(&context);
    }
    faulty::write(own_page(), 0);
}

#[test]
fn handlers_without_information_are_called() {
    passes("has_a_plain_handler");
}

#[test]
#[ignore = "run by handlers_without_information_are_called"]
fn has_a_plain_handler() {
    extern "C" fn plain(_: c_int) {
        open_page(0, ptr::null_mut(), ptr::null_mut());
    }
    let handler: extern "C" fn(c_int) = plain;
    unsafe { libc::signal(libc::SIGSEGV, handler as usize) };
    let page = own_page();
    fault_in_turns(|| {
        protect(libc::PROT_NONE);
        faulty::write(page, 0);
    });
}

#[test]
fn signals_that_are_sent_do_what_they_did_before() {
    passes("ignores_what_is_sent");
    faults("is_sent_a_signal");
    faults("ignores_a_fault");
}

#[test]
#[ignore = "run by signals_that_are_sent_do_what_they_did_before"]
fn ignores_what_is_sent() {
    unsafe { libc::signal(libc::SIGSEGV, libc::SIG_IGN) };
    let _context = Context::new();
    unsafe { libc::raise(libc::SIGSEGV) };
}

#[test]
#[ignore = "run by signals_that_are_sent_do_what_they_did_before"]
fn is_sent_a_signal() {
    unsafe { libc::signal(libc::SIGSEGV, libc::SIG_DFL) };
    let _context = Context::new();
    unsafe { libc::raise(libc::SIGSEGV) };
}

/// The system ends a process that ignores a fault.
#[test]
#[ignore = "run by signals_that_are_sent_do_what_they_did_before"]
fn ignores_a_fault() {
    unsafe { libc::signal(libc::SIGSEGV, libc::SIG_IGN) };
    let _context = Context::new();
    faulty::write(own_page(), 0);
}

#[test]
fn the_last_of_many_handlers_is_called() {
    passes("has_many_handlers");
}

/// More than the checker has levels.
#[test]
#[ignore = "run by the_last_of_many_handlers_is_called"]
fn has_many_handlers() {
    let context = Context::new();
    for flags in [0, libc::SA_NODEFER, libc::SA_RESTART, libc::SA_ONSTACK] {
        for handler in [do_nothing, jump_back, fault_again] {
            install(libc::SIGSEGV, handler, flags);
            call(&context);
        }
    }
    let memory = context.alloc(Kind::Device, 1000);
    faulty::read(memory, 5);
    context.free(memory);
}

#[test]
fn a_handler_is_called_for_a_fault_of_its_own() {
    passes("faults_in_a_fault");
}

#[test]
#[ignore = "run by a_handler_is_called_for_a_fault_of_its_own"]
fn faults_in_a_fault() {
    install(libc::SIGSEGV, fault_again, 0);
    let _context = Context::new();
    faulty::write(own_page(), 0);
    assert_eq!(CALLS.load(Ordering::Relaxed), 2);
}
