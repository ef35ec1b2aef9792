#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;

use super::*;
use crate::opencl::Unit;

fn folder(name: &str) -> PathBuf {
    let path = env::temp_dir().join(format!("zeusm-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&path);
    path
}

fn maker() -> Maker {
    Maker {
        device: "processor".to_owned(),
        driver: "2026.22".to_owned(),
        libraries: [(1, 2, 3), (4, 5, 6)],
        processor: [7; 8],
        variables: vec![("CL_CONFIG_A".to_owned(), "1".to_owned())],
        seconds: None,
    }
}

fn job(options: &str, constant: u8) -> Job {
    let unit = Unit {
        code: vec![1; 100],
        options: options.to_owned(),
        specialisation: vec![(7, vec![constant])],
        ..Unit::default()
    };
    vec![unit]
}

fn entry(path: &Path, maker: &Maker, job: &Job) -> Entry {
    Entry::new(Folder::open(path, 1 << 20).unwrap(), maker, job).unwrap()
}

#[test]
fn code_is_found_by_all_that_it_depends_on() {
    let path = folder("depends");
    let (one, module) = (maker(), job("-g", 1));
    assert_eq!(entry(&path, &one, &module).read(), None);
    entry(&path, &one, &module).write(b"code");
    assert_eq!(entry(&path, &one, &module).read().unwrap(), b"code");
    let changed = |change: fn(&mut Maker)| {
        let mut other = maker();
        change(&mut other);
        other
    };
    let others = [
        (changed(|maker| maker.device.push('2')), module.clone()),
        (changed(|maker| maker.driver.push('1')), module.clone()),
        (changed(|maker| maker.libraries[0].1 = 9), module.clone()),
        (changed(|maker| maker.libraries[1].2 = 9), module.clone()),
        (changed(|maker| maker.processor[3] = 0), module.clone()),
        (changed(|maker| maker.variables.clear()), module.clone()),
        (changed(|maker| maker.seconds = Some(5)), module.clone()),
        (maker(), job("", 1)),
        (maker(), job("-g", 2)),
        (maker(), [module.clone(), module.clone()].concat()),
    ];
    for (other, module) in &others {
        assert_eq!(entry(&path, other, module).read(), None);
    }
    fs::remove_dir_all(path).unwrap();
}

#[test]
fn a_file_with_another_key_or_another_byte_is_ignored_and_replaced() {
    let path = folder("damaged");
    let (one, two) = (job("", 1), job("", 2));
    entry(&path, &maker(), &two).write(b"other code");
    let others = entry(&path, &maker(), &two).name;
    let place = entry(&path, &maker(), &one);
    let file = path.join(format!("{:016x}.zeusm", place.name));
    fs::rename(path.join(format!("{others:016x}.zeusm")), &file).unwrap();
    assert_eq!(place.read(), None);
    place.write(b"code");
    let whole = fs::read(&file).unwrap();
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x10;
        fs::write(&file, damaged).unwrap();
        assert_eq!(place.read(), None, "byte {at}");
        fs::write(&file, &whole[..at]).unwrap();
        assert_eq!(place.read(), None, "{at} bytes");
    }
    place.write(b"code");
    assert_eq!(place.read().unwrap(), b"code");
    fs::remove_dir_all(path).unwrap();
}
