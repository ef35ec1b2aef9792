#![allow(clippy::unwrap_used)]

use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::process;
use std::sync::Weak;

use zeusm_process::testing::in_child;

use super::*;
use crate::usm::{Allocation, UsmKind};
use crate::{Context, Runtime};

fn number() -> RawFd {
    SERVER.lock().as_ref().unwrap().socket.number()
}

/// The thread's end drops its reference.
fn is_running() -> bool {
    SERVER
        .lock()
        .as_ref()
        .is_some_and(|it| Arc::strong_count(it) > 1)
}

/// A file of the program gets the number, as when the program closes all descriptors, as daemons do, and opens its own.
fn replace_by(number: RawFd, file: impl AsFd) {
    // SAFETY: the number is that of a descriptor of zeusm, which must not use it any more.
    let answer = unsafe { libc::dup2(file.as_fd().as_raw_fd(), number) };
    assert_eq!(answer, number);
}

/// Starts a server that waits for a client; returns the number of its socket.
fn start_and_wait() -> RawFd {
    start().unwrap();
    thread::sleep(Duration::from_millis(200));
    number()
}

fn wait_until(condition: impl Fn() -> bool) {
    while !condition() {
        thread::sleep(Duration::from_millis(1));
    }
}

fn connect() -> io::Result<UnixStream> {
    let token = SERVER.lock().as_ref().unwrap().token;
    let name = name(token);
    UnixStream::connect_addr(&SocketAddr::from_abstract_name(name).unwrap())
}

#[test]
fn clients_of_a_socket_of_the_program_with_the_number_of_the_server_are_its_own() {
    in_child(|| {
        let number = start_and_wait();
        let name = format!("zeusm-test-{}", process::id());
        let place = SocketAddr::from_abstract_name(name).unwrap();
        let program = UnixListener::bind_addr(&place).unwrap();
        replace_by(number, &program);
        // The last client that the server accepts.
        drop(connect());
        wait_until(|| !is_running());
        let _client = UnixStream::connect_addr(&place).unwrap();
        program.set_nonblocking(true).unwrap();
        program.accept().unwrap();
        start_and_wait();
        assert!(is_running());
        connect().unwrap();
    });
}

#[test]
fn the_export_after_the_program_closed_the_socket_starts_a_new_server() {
    in_child(|| {
        let file = tempfile::tempfile().unwrap();
        let number = start_and_wait();
        replace_by(number, &file);
        start_and_wait();
        // The former server would have answered one client.
        for _ in 0..3 {
            connect().unwrap();
            thread::sleep(Duration::from_millis(50));
        }
        assert!(is_running());
    });
}

#[test]
fn a_server_that_runs_is_left_alone() {
    in_child(|| {
        let number = start_and_wait();
        assert_eq!(start_and_wait(), number);
        connect().unwrap();
    });
}

#[test]
fn the_end_of_a_former_server_leaves_the_socket_that_got_its_number() {
    in_child(|| {
        let number = start_and_wait();
        let former = SERVER.lock().as_ref().map(Arc::downgrade);
        // The server waits for the client's handle.
        let client = connect().unwrap();
        thread::sleep(Duration::from_millis(200));
        // SAFETY: the number is that of the server's socket, which must not use it any more.
        assert_eq!(unsafe { libc::close(number) }, 0);
        thread::spawn(|| {
            thread::sleep(Duration::from_millis(300));
            drop(client);
        });
        start_and_wait();
        wait_until(|| {
            former
                .as_ref()
                .is_some_and(|it| Weak::strong_count(it) == 0)
        });
        assert!(is_running());
        connect().unwrap();
    });
}

#[test]
fn a_child_has_no_copy_of_the_socket() {
    in_child(|| {
        start_and_wait();
        let about = zeusm_process::inode;
        let numbers = {
            let server = SERVER.lock();
            let listener = server.as_ref().unwrap();
            // Nor of the pipe, which would tell that the parent lives.
            let (lifeline, given) = (&listener.lifeline, &listener.given);
            [listener.socket.number(), lifeline.number(), given.number()]
        };
        let inodes = numbers.map(about);
        in_child(|| {
            assert!(numbers.iter().all(|number| about(*number).is_none()));
            assert!(SERVER.lock().is_none());
            start_and_wait();
            connect().unwrap();
        });
        assert_eq!(numbers.map(about), inodes);
    });
}

/// The server's answer to a handle.
fn ask(handle: &IpcHandle) -> u8 {
    use std::io::Write as _;
    let mut client = connect().unwrap();
    client.write_all(&handle.to_bytes()).unwrap();
    let mut answer = [u8::MAX];
    client.read_exact(&mut answer).unwrap();
    answer[0]
}

#[test]
fn the_server_passes_no_descriptor_of_the_program() {
    in_child(|| {
        let device = Runtime::get().unwrap().default_device().unwrap();
        let context = Context::new(device.driver()).unwrap();
        let memory = Allocation::direct(&context, &device, UsmKind::Host, 4096, 0).unwrap();
        let handle = IpcHandle::new(&memory, 0..4096).unwrap();
        assert_eq!(ask(&handle), LIVE_WITH_DESCRIPTOR);
        let mut forged = handle.clone();
        forged.tag[0] ^= 1;
        assert_eq!(ask(&forged), FORGED);
        let number = handle.driver_handle.descriptor();
        replace_by(number, tempfile::tempfile().unwrap());
        assert_eq!(ask(&handle), FREED);
        drop(memory);
        assert_eq!(ask(&handle), FREED);
    });
}
