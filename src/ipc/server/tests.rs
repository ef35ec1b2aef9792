#![allow(clippy::unwrap_used)]

use std::os::fd::RawFd;
use std::process;

use rustix::fs::MemfdFlags;
use zeusm_process::testing::in_child;

use super::*;
use crate::ipc::tests::test_handle;

/// Of this process alone, as names of sockets are the machine's.
fn token(of: u8) -> [u8; 16] {
    (u128::from(process::id()) << 8 | u128::from(of)).to_ne_bytes()
}

/// The thread's end drops its reference.
fn is_running() -> bool {
    let server = SERVER.get_or_default().lock();
    server
        .as_ref()
        .is_some_and(|it| Arc::strong_count(&it.listener) > 1)
}

/// A file of the program gets the number, as when the program closes all descriptors, as daemons do, and opens its own.
fn replace(number: RawFd, file: impl AsFd) {
    // SAFETY: the number is that of a descriptor of zeusm, which must not use it any more.
    let answer = unsafe { libc::dup2(file.as_fd().as_raw_fd(), number) };
    assert_eq!(answer, number);
}

/// Starts a server that waits for a client; returns the number of its socket.
fn start_and_wait(token: [u8; 16]) -> RawFd {
    start(token);
    thread::sleep(Duration::from_millis(200));
    LISTENER.load(Ordering::Relaxed)
}

fn wait_until(condition: impl Fn() -> bool) {
    while !condition() {
        thread::sleep(Duration::from_millis(1));
    }
}

fn connect(token: [u8; 16]) -> io::Result<UnixStream> {
    UnixStream::connect_addr(&address(token).unwrap())
}

#[test]
fn clients_of_a_socket_of_the_program_with_the_number_of_the_server_are_its_own() {
    in_child(|| {
        let number = start_and_wait(token(5));
        let name = format!("zeusm-test-{}", process::id());
        let place = SocketAddr::from_abstract_name(name).unwrap();
        let program = UnixListener::bind_addr(&place).unwrap();
        replace(number, &program);
        // The last client that the server accepts.
        drop(connect(token(5)));
        wait_until(|| !is_running());
        let _client = UnixStream::connect_addr(&place).unwrap();
        program.set_nonblocking(true).unwrap();
        program.accept().unwrap();
        start(token(6));
        assert!(is_running());
        connect(token(6)).unwrap();
    });
}

#[test]
fn the_export_after_the_program_closed_the_socket_starts_a_new_server() {
    in_child(|| {
        let file = tempfile::tempfile().unwrap();
        let number = start_and_wait(token(5));
        replace(number, &file);
        start(token(6));
        connect(token(6)).unwrap();
        // No thread waits at the former socket.
        wait_until(|| connect(token(5)).is_err());
        // The program closed the socket only, so that the token stays the same.
        let number = start_and_wait(token(6));
        replace(number, &file);
        start(token(6));
        // The former server would have answered one client.
        for _ in 0..3 {
            connect(token(6)).unwrap();
            thread::sleep(Duration::from_millis(50));
        }
        assert!(is_running());
    });
}

#[test]
fn the_export_after_the_program_closed_the_table_starts_a_new_server() {
    in_child(|| {
        start_and_wait(token(5));
        start(token(6));
        connect(token(6)).unwrap();
        wait_until(|| connect(token(5)).is_err());
    });
}

#[test]
fn the_end_of_a_former_server_leaves_the_socket_that_got_its_number() {
    in_child(|| {
        let number = start_and_wait(token(5));
        let server = SERVER.get_or_default().lock();
        let former = server.as_ref().map(|it| Arc::downgrade(&it.listener));
        drop(server);
        // The server waits for the client's handle.
        let client = connect(token(5)).unwrap();
        thread::sleep(Duration::from_millis(200));
        // SAFETY: the number is that of the server's socket, which must not use it any more.
        assert_eq!(unsafe { libc::close(number) }, 0);
        start(token(6));
        let is_next = || LISTENER.load(Ordering::Relaxed) == number;
        assert!(is_next());
        drop(client);
        wait_until(|| former.as_ref().is_some_and(|it| it.strong_count() == 0));
        assert!(is_next() && is_running());
        connect(token(6)).unwrap();
    });
}

/// The answer of the server to a handle.
fn ask(handle: &IpcHandle) -> ExportStatus {
    request(handle, || ()).unwrap().0
}

#[test]
fn the_server_passes_no_descriptor_of_the_program() {
    in_child(|| {
        let memory = rustix::fs::memfd_create("test", MemfdFlags::CLOEXEC).unwrap();
        let memory = Arc::new(OwnDescriptor::new(memory).unwrap());
        let (entry, key) = export_table::insert(Some(Arc::clone(&memory))).unwrap();
        start(entry.token);
        let handle = test_handle(entry, &key);
        assert!(matches!(ask(&handle), ExportStatus::Live(Some(_))));
        replace(memory.number(), tempfile::tempfile().unwrap());
        assert!(matches!(ask(&handle), ExportStatus::Freed));
        // The same once there is another table.
        replace(entry.descriptor, tempfile::tempfile().unwrap());
        let (other, other_key) = export_table::insert(None).unwrap();
        assert_ne!(other.token, entry.token);
        assert!(matches!(ask(&handle), ExportStatus::Freed));
        start(other.token);
        let other = test_handle(other, &other_key);
        assert!(matches!(ask(&other), ExportStatus::Live(None)));
        let forged = test_handle(other.entry, &key);
        assert!(matches!(ask(&forged), ExportStatus::Forged));
    });
}
