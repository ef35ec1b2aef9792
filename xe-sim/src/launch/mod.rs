//! The launcher: puts the files of a machine into a root folder, in a mount namespace of its own, and runs a command
//! there with the library preloaded. Nothing of it is left when the command has ended.

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

/// The folder in the root that holds what the launcher brings.
const OWN: &str = "run/xe-sim";
const LIBRARY: &str = "libxe_sim.so";
/// Preloads for every program, those with an emptied environment as well.
const PRELOAD: &str = "etc/ld.so.preload";
const PREFIX: &str = "XE_SIM_";

/// What the launcher was asked for.
#[derive(Debug)]
struct Request {
    root: PathBuf,
    machine: &'static Machine,
    binds: Vec<PathBuf>,
    command: Vec<OsString>,
}

/// Runs the command that the arguments name. It comes back only when that fails.
pub fn run(arguments: impl Iterator<Item = OsString>) -> io::Error {
    let begin = || {
        let request = parse(arguments)?;
        enter(&request)?;
        Ok(request.command)
    };
    match begin() {
        Ok(command) => Command::new(&command[0]).args(&command[1..]).exec(),
        Err(error) => error,
    }
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

/// Makes the root this process's root, with the machine's files in it.
fn enter(request: &Request) -> io::Result<()> {
    let root = &request.root;
    // SAFETY: the launcher has one thread, and shares nothing that the namespace would separate.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNS)? };
    mount_change(
        "/",
        MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
    )?;
    // Only what is mounted can become a root.
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
        mount_bind_recursive(bind, folder(root, inside)?)?;
    }
    pivot(root)
}

/// Makes the root the namespace's own, where chroot would forbid user namespaces to the programs in it.
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

/// The library lies beside the launcher.
fn preload(root: &Path) -> io::Result<()> {
    let library = env::current_exe()?.with_file_name(LIBRARY);
    fs::copy(&library, root.join(OWN).join(LIBRARY))
        .map_err(|error| io::Error::other(format!("{}: {error}", library.display())))?;
    let list = root.join(OWN).join("preload");
    fs::write(&list, format!("/{OWN}/{LIBRARY}\n"))?;
    let place = root.join(PRELOAD);
    if !place.exists() {
        fs::write(&place, "")?;
    }
    Ok(mount_bind(list, place)?)
}

/// The simulator's variables, for programs that are started with an emptied environment.
fn environment(machine: &Machine) -> String {
    let own = |name: &OsStr| name.to_str().is_some_and(|name| name.starts_with(PREFIX));
    let mut lines = format!("{}={}\n", settings::MACHINE, machine.name);
    for (name, value) in env::vars_os().filter(|(name, _)| own(name)) {
        lines += &format!("{}={}\n", name.display(), value.display());
    }
    lines
}
