//! A seccomp filter, as containers have one.

/// Makes one system call fail with `error`, for this thread and those that it starts, permanently.
pub fn refuse(call: libc::c_long, error: i32) {
    // The number of a call comes first in the kernel's record of it.
    install(&[(0, call as u32)], error, 0);
}

/// Refuses new threads and processes to all threads of this process, permanently.
#[allow(dead_code)]
pub fn refuse_threads() {
    for call in [libc::SYS_clone3, libc::SYS_clone] {
        let all_threads = libc::SECCOMP_FILTER_FLAG_TSYNC;
        install(&[(0, call as u32)], libc::EAGAIN, all_threads);
    }
}

/// As [`refuse`], only for calls whose argument number `position` is `value`.
#[allow(dead_code)]
pub fn refuse_with(call: libc::c_long, position: u32, value: u32, error: i32) {
    let offset = 16 + 8 * position;
    install(&[(0, call as u32), (offset, value)], error, 0);
}

/// Refuses calls whose record has these values at these offsets.
fn install(conditions: &[(u32, u32)], error: i32, flags: libc::c_ulong) {
    let statement = |code: u32, k: u32, jt, jf| libc::sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    };
    let (load, equal, give) = (
        libc::BPF_LD | libc::BPF_W | libc::BPF_ABS,
        libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
        libc::BPF_RET | libc::BPF_K,
    );
    let mut filter = Vec::new();
    for (index, (offset, value)) in conditions.iter().enumerate() {
        // To the last statement, over the remaining conditions and the refusal.
        let over = 2 * (conditions.len() - index - 1) + 1;
        filter.push(statement(load, *offset, 0, 0));
        filter.push(statement(equal, *value, 0, over as u8));
    }
    let refusal = libc::SECCOMP_RET_ERRNO | error as u32;
    filter.push(statement(give, refusal, 0, 0));
    filter.push(statement(give, libc::SECCOMP_RET_ALLOW, 0, 0));
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_mut_ptr(),
    };
    let installed = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::syscall(
                libc::SYS_seccomp,
                libc::SECCOMP_SET_MODE_FILTER,
                flags,
                &raw const program,
            ) == 0
    };
    assert!(installed, "{}", std::io::Error::last_os_error());
}
