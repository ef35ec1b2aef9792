"""System calls that fail, and permissions that are missing: for programs that test these."""

# Defines `refuse(call, errno)`: a system call, by its number on x86-64, fails in this thread and in those that it starts.
FILTER = """
    import ctypes, struct

    def refuse(call, errno):
        # Loads the number of the call: this one returns an error, others are allowed.
        code = [(0x20, 0, 0, 0), (0x15, 0, 1, call), (0x06, 0, 0, 0x50000 | errno), (0x06, 0, 0, 0x7FFF0000)]
        code = b"".join(struct.pack("HBBI", *each) for each in code)
        keep = ctypes.create_string_buffer(code, len(code))
        program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", 4, ctypes.addressof(keep)))
        libc = ctypes.CDLL(None)
        assert libc.prctl(38, 1, 0, 0, 0) == 0  # PR_SET_NO_NEW_PRIVS
        assert libc.prctl(22, 2, program) == 0  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER
"""

# Drops all capabilities (header version 3), and with them the permission to trace other processes.
NO_CAPABILITIES = """
    import ctypes
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.syscall(126, (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()) == 0
"""
