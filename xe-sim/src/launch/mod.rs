//! The launcher: creates a mount namespace with the files of a machine in a root folder, and runs a command there with the
//! library preloaded. The mounts disappear with the namespace when the command exits.

mod files;

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind, mount_bind_recursive,
    mount_change, unmount,
};
use rustix::process::pivot_root;
use rustix::thread::UnshareFlags;

use crate::machine::{self, MACHINES, Machine};
use crate::settings;
use crate::{builtin, faults};

/// The folder in the root for the launcher's files.
const OWN: &str = "run/xe-sim";
const LIBRARY: &str = "libxe_sim.so";
/// The dynamic linker's preload list. Unlike `LD_PRELOAD`, it also applies to programs with a cleared environment.
const PRELOAD: &str = "etc/ld.so.preload";
const PREFIX: &str = "XE_SIM_";

/// The parsed command line.
#[derive(Debug)]
struct Request {
    root: PathBuf,
    machine: &'static Machine,
    binds: Vec<PathBuf>,
    command: Vec<OsString>,
}

/// Replaces this process by the command in the arguments. Returns only on failure.
pub fn run(arguments: impl Iterator<Item = OsString>) -> io::Error {
    let begin = || {
        let request = parse(arguments)?;
        check(&request)?;
        enter(&request)?;
        Ok(request.command)
    };
    match begin() {
        Ok(command) => named(&command[0])(Command::new(&command[0]).args(&command[1..]).exec()),
        Err(error) => error,
    }
}

/// Adds the name of a file to an error.
fn named(name: impl AsRef<Path>) -> impl FnOnce(io::Error) -> io::Error {
    move |error| io::Error::other(format!("{}: {error}", name.as_ref().display()))
}

/// Refuses wrong folders and variables before anything is changed.
fn check(request: &Request) -> io::Result<()> {
    if !request.root.join("usr/lib").is_dir() {
        let error = io::Error::other("there is no system in it (`make xe-sim` creates one)");
        return Err(named(&request.root)(error));
    }
    for bind in &request.binds {
        if !bind.is_absolute() {
            return Err(named(bind)(io::Error::other(
                "--bind needs an absolute path",
            )));
        }
        fs::read_dir(bind).map_err(named(bind))?;
    }
    faults::check()
        .and_then(|()| builtin::check())
        .map_err(io::Error::other)
}

fn parse(mut arguments: impl Iterator<Item = OsString>) -> io::Result<Request> {
    let usage = || {
        let names: Vec<_> = MACHINES.iter().map(|machine| machine.name).collect();
        io::Error::other(format!(
            "usage: xe-sim ROOT {} [--bind FOLDER]... -- COMMAND [ARGUMENT]...",
            names.join("|")
        ))
    };
    let root = arguments.next().ok_or_else(usage)?.into();
    let name = arguments.next().ok_or_else(usage)?;
    let machine = name.to_str().and_then(machine::named).ok_or_else(usage)?;
    let mut binds = Vec::new();
    loop {
        match arguments.next() {
            Some(option) if option == "--bind" => {
                binds.push(arguments.next().ok_or_else(usage)?.into());
            }
            Some(end) if end == "--" => break,
            _ => return Err(usage()),
        }
    }
    let command: Vec<_> = arguments.collect();
    if command.is_empty() {
        return Err(usage());
    }
    Ok(Request {
        root,
        machine,
        binds,
        command,
    })
}

/// Creates the machine's files in the root folder and makes it the root of this process.
fn enter(request: &Request) -> io::Result<()> {
    let root = &request.root;
    // SAFETY: the launcher is single-threaded, and a new mount namespace does not affect memory or descriptors.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNS) }.map_err(|error| {
        io::Error::other(format!("a mount namespace, which needs root: {error}"))
    })?;
    mount_change(
        "/",
        MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
    )?;
    // pivot_root requires a mount point.
    mount_bind_recursive(root, root)?;
    for (kind, place) in [
        ("proc", "proc"),
        ("tmpfs", "sys"),
        ("tmpfs", "dev/dri"),
        ("tmpfs", "dev/shm"),
        ("tmpfs", OWN),
    ] {
        mount(kind, folder(root, place)?, kind, MountFlags::empty(), None)?;
    }
    files::write(root, request.machine)?;
    preload(root)?;
    fs::write(
        root.join(&settings::FILE[1..]),
        environment(request.machine),
    )?;
    for bind in &request.binds {
        let inside = bind.strip_prefix("/").map_err(io::Error::other)?;
        mount_bind_recursive(bind, folder(root, inside)?)
            .map_err(|error| named(bind)(error.into()))?;
    }
    pivot(root)
}

/// Makes the folder the root of the namespace. `chroot` would prevent programs from creating user namespaces.
fn pivot(root: &Path) -> io::Result<()> {
    env::set_current_dir(root)?;
    pivot_root(".", ".")?;
    unmount(".", UnmountFlags::DETACH)?;
    env::set_current_dir("/")
}

fn folder(root: &Path, inside: impl AsRef<Path>) -> io::Result<PathBuf> {
    let folder = root.join(inside);
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// Copies the library, which is in the launcher's folder, into the root and adds it to the preload list.
fn preload(root: &Path) -> io::Result<()> {
    let library = env::current_exe()?.with_file_name(LIBRARY);
    fs::copy(&library, root.join(OWN).join(LIBRARY)).map_err(named(&library))?;
    let list = root.join(OWN).join("preload");
    fs::write(&list, format!("/{OWN}/{LIBRARY}\n"))?;
    let place = root.join(PRELOAD);
    if !place.exists() {
        fs::write(&place, "")?;
    }
    Ok(mount_bind(list, place)?)
}

/// The simulator's variables as lines, for programs that are started with a cleared environment.
fn environment(machine: &Machine) -> String {
    let own = |name: &OsStr| name.to_str().is_some_and(|name| name.starts_with(PREFIX));
    let mut lines = format!("{}={}\n", settings::MACHINE, machine.name);
    for (name, value) in env::vars_os().filter(|(name, _)| own(name)) {
        lines += &format!("{}={}\n", name.display(), value.display());
    }
    lines
}
