#![allow(clippy::unwrap_used)]

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::PathBuf;
use std::time::Duration;

use rustix::process::{Rlimit, setrlimit};
use zeusm_process::testing::in_child;

use super::*;

fn path(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("zeusm-{name}-{}", process::id()));
    let _ = fs::remove_dir_all(&path);
    path
}

fn refusal(path: &Path) -> String {
    Folder::open(path, 100).err().unwrap().to_string()
}

/// Has a file look as if it had been used some hours ago.
fn age(path: &Path, hours: u64) {
    let file = File::options().append(true).open(path).unwrap();
    let then = SystemTime::now() - Duration::from_secs(3600 * hours);
    file.set_modified(then).unwrap();
}

#[test]
fn the_files_that_were_not_used_for_the_longest_are_removed() {
    let path = path("oldest");
    let folder = Folder::open(&path, 100).unwrap();
    assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o700);
    let others = ["the user's", "notes.zeusm", "0123456789abcde!.zeusm"];
    for name in others {
        fs::write(path.join(name), [0; 1000]).unwrap();
    }
    for (name, hours) in [(0xa, 3), (0xb, 2), (0xc, 1)] {
        folder.write(name, &[0; 30]);
        age(&path.join(full(name)), hours);
    }
    assert_eq!(folder.read(0xa).unwrap(), [0; 30]);
    folder.write(0xd, &[0; 30]);
    let are_there = [0xa, 0xb, 0xc, 0xd].map(|name| folder.read(name).is_some());
    assert_eq!(are_there, [true, false, true, true]);
    assert_eq!(folder.content().to_string(), "3 modules, 0 of 0 MiB");
    folder.write(0xd, &[0; 101]);
    assert_eq!(folder.read(0xd).unwrap(), [0; 30], "larger than all");
    assert_eq!(others.map(|name| path.join(name).exists()), [true; 3]);
    fs::remove_dir_all(path).unwrap();
}

/// What a process left that was killed while it wrote.
#[test]
fn an_unfinished_file_is_no_module_and_is_removed_when_it_is_old() {
    let path = path("unfinished");
    let folder = Folder::open(&path, 100).unwrap();
    let unfinished = [temporary(), temporary()].map(|name| path.join(name));
    for file in &unfinished {
        fs::write(file, [0; 10]).unwrap();
    }
    assert_eq!(folder.content().to_string(), "0 modules, 0 of 0 MiB");
    age(&unfinished[0], 25);
    folder.remove_oldest();
    let are_there = unfinished.each_ref().map(|it| it.exists());
    assert_eq!(are_there, [false, true]);
    folder.try_to_write().unwrap();
    assert_eq!(path.read_dir().unwrap().count(), 1);
    fs::remove_dir_all(path).unwrap();
}

#[test]
fn a_folder_that_others_may_have_written_to_is_not_used() {
    let path = path("others");
    Folder::open(&path, 100).unwrap();
    for mode in [0o720, 0o702] {
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        assert!(refusal(&path).contains("other users can write"));
    }
    fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    let folder = Folder::open(&path, 100).unwrap();
    folder.write(0xa, &[0]);
    for (mode, is_used) in [(0o620, false), (0o602, false), (0o644, true)] {
        fs::set_permissions(path.join(full(0xa)), Permissions::from_mode(mode)).unwrap();
        assert_eq!(folder.read(0xa).is_some(), is_used, "{mode:o}");
    }
    if geteuid().is_root() {
        chown(path.join(full(0xa)), Some(1), None).unwrap();
        assert_eq!(folder.read(0xa), None);
        chown(&path, Some(1), None).unwrap();
        assert!(refusal(&path).contains("another user"));
    } else {
        assert!(refusal(Path::new("/usr")).contains("another user"));
    }
    fs::remove_dir_all(path).unwrap();
}

#[test]
fn a_file_above_the_process_s_limit_is_not_written() {
    in_child(|| {
        let path = path("limit");
        let folder = Folder::open(&path, 100).unwrap();
        let limit = Rlimit {
            current: Some(20),
            maximum: Some(20),
        };
        setrlimit(Resource::Fsize, limit).unwrap();
        // The system would end the process.
        folder.write(0xa, &[0; 21]);
        folder.write(0xb, &[0; 20]);
        let sizes = [0xa, 0xb].map(|name| folder.read(name).map(|bytes| bytes.len()));
        assert_eq!(sizes, [None, Some(20)]);
        fs::remove_dir_all(path).unwrap();
    });
}

#[test]
fn what_is_no_file_is_not_read() {
    let path = path("links");
    let folder = Folder::open(&path, 100).unwrap();
    std::os::unix::fs::symlink("/etc/hostname", path.join(full(0xa))).unwrap();
    fs::create_dir(path.join(full(0xb))).unwrap();
    assert_eq!((folder.read(0xa), folder.read(0xb)), (None, None));
    folder.write(0xa, b"new");
    assert_eq!(folder.read(0xa).unwrap(), b"new");
    assert!(Folder::open(Path::new("/proc/zeusm"), 100).is_err());
    std::os::unix::fs::symlink("/nowhere/zeusm", path.join("dangling")).unwrap();
    for other in [path.join("dangling"), path.join(full(0xa))] {
        assert!(refusal(&other).contains("not a folder"), "{other:?}");
    }
    fs::remove_dir_all(path).unwrap();
}
