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

#[test]
fn the_files_that_were_not_used_for_the_longest_are_removed() {
    let path = path("oldest");
    let folder = Folder::open(&path, 100).unwrap();
    assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o700);
    fs::write(path.join("the user's"), [0; 1000]).unwrap();
    for (name, hours) in [("a", 3), ("b", 2), ("c", 1)] {
        folder.write(name, &[0; 30]);
        let file = File::options().append(true).open(path.join(full(name)));
        let then = SystemTime::now() - Duration::from_secs(3600 * hours);
        file.unwrap().set_modified(then).unwrap();
    }
    assert_eq!(folder.read("a").unwrap(), [0; 30]);
    folder.write("d", &[0; 30]);
    let are_there = ["a", "b", "c", "d"].map(|name| folder.read(name).is_some());
    assert_eq!(are_there, [true, false, true, true]);
    assert_eq!(folder.content().to_string(), "3 modules, 0 of 0 MiB");
    folder.write("d", &[0; 101]);
    assert_eq!(folder.read("d").unwrap(), [0; 30], "larger than all");
    assert!(path.join("the user's").exists());
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
    folder.write("a", &[0]);
    for (mode, is_used) in [(0o620, false), (0o602, false), (0o644, true)] {
        fs::set_permissions(path.join(full("a")), Permissions::from_mode(mode)).unwrap();
        assert_eq!(folder.read("a").is_some(), is_used, "{mode:o}");
    }
    if geteuid().is_root() {
        chown(path.join(full("a")), Some(1), None).unwrap();
        assert_eq!(folder.read("a"), None);
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
        folder.write("a", &[0; 21]);
        folder.write("b", &[0; 20]);
        let sizes = ["a", "b"].map(|name| folder.read(name).map(|bytes| bytes.len()));
        assert_eq!(sizes, [None, Some(20)]);
        fs::remove_dir_all(path).unwrap();
    });
}

#[test]
fn what_is_no_file_is_not_read() {
    let path = path("links");
    let folder = Folder::open(&path, 100).unwrap();
    std::os::unix::fs::symlink("/etc/hostname", path.join(full("a"))).unwrap();
    fs::create_dir(path.join(full("b"))).unwrap();
    assert_eq!((folder.read("a"), folder.read("b")), (None, None));
    folder.write("a", b"new");
    assert_eq!(folder.read("a").unwrap(), b"new");
    assert!(Folder::open(Path::new("/proc/zeusm"), 100).is_err());
    fs::remove_dir_all(path).unwrap();
}
