//! The device nodes and sysfs files that Intel's driver and zeusm read.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};

use crate::machine::{MAJOR, Machine, Slot};

const VENDOR_INTEL: u16 = 0x8086;
const CLASS_DISPLAY: u32 = 0x03_0000;
/// The first render node number; card numbers start at zero.
const FIRST_RENDER: u32 = 128;

pub(super) fn write(root: &Path, machine: &Machine) -> io::Result<()> {
    for place in ["sys/dev/char", "sys/class/drm", "sys/bus/pci/devices"] {
        fs::create_dir_all(root.join(place))?;
    }
    fs::create_dir_all(root.join("dev/dri/by-path"))?;
    machine.slots.iter().try_for_each(|slot| gpu(root, slot))
}

/// Creates the files of one GPU at their Linux paths.
fn gpu(root: &Path, slot: &Slot) -> io::Result<()> {
    let model = slot.model;
    let pci = slot.pci;
    let device = format!("devices/pci0000:00/{pci}");
    let folder = root.join("sys").join(&device);
    for (file, value) in [
        ("vendor", format!("{VENDOR_INTEL:#06x}")),
        ("device", format!("{:#06x}", model.device)),
        ("class", format!("{CLASS_DISPLAY:#08x}")),
        ("revision", format!("{:#04x}", model.revision)),
        ("subsystem_vendor", format!("{VENDOR_INTEL:#06x}")),
        ("subsystem_device", "0x0000".to_owned()),
        ("tile0/gt0/freq0/max_freq", model.frequency.to_string()),
        ("tile0/gt0/freq0/rp0_freq", model.frequency.to_string()),
    ] {
        let file = folder.join(file);
        fs::create_dir_all(file.parent().unwrap_or(&folder))?;
        fs::write(file, value + "\n")?;
    }
    let sys = root.join("sys");
    symlink(
        format!("../../../{device}"),
        sys.join("bus/pci/devices").join(pci),
    )?;
    symlink(
        format!("../../{device}"),
        sys.join(format!("dev/char/{MAJOR}:{}", slot.minor)),
    )?;
    let card = format!("card{}", slot.render - FIRST_RENDER);
    let render = format!("renderD{}", slot.render);
    for (node, suffix) in [(card, "card"), (render, "render")] {
        let inside = folder.join("drm").join(&node);
        fs::create_dir_all(&inside)?;
        symlink(format!("../../../{pci}"), inside.join("device"))?;
        symlink(
            format!("../../{device}/drm/{node}"),
            sys.join("class/drm").join(&node),
        )?;
        let nodes = root.join("dev/dri");
        let number = makedev(MAJOR, slot.minor);
        let mode = Mode::from_raw_mode(0o666);
        mknodat(
            CWD,
            nodes.join(&node),
            FileType::CharacterDevice,
            mode,
            number,
        )?;
        symlink(
            format!("../{node}"),
            nodes.join(format!("by-path/pci-{pci}-{suffix}")),
        )?;
    }
    Ok(())
}
