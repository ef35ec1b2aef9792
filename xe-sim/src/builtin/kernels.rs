//! Emulation of the driver's built-in kernels. Kernel names and argument order follow the public sources in
//! `shared/source/built_ins/kernels` of Intel's compute runtime.

use super::launch::Launch;
use crate::memory::PageFault;

/// Executes a kernel for all of its work items.
pub(super) type Operation = fn(&Launch<'_>) -> Result<(), PageFault>;

/// Bytes per work item of the wide kernels (four dwords).
const WIDE: u64 = 16;
/// The maximum length of a fill pattern in bytes.
const LONGEST_PATTERN: u64 = 4096;

/// The emulation of the kernel with this name.
pub(super) fn named(name: &str) -> Option<Operation> {
    Some(match name {
        "CopyBufferToBufferSideRegion" => |launch| copy_region(launch, 1),
        "CopyBufferToBufferMiddleRegion" => |launch| copy_region(launch, WIDE),
        "copyBufferToBufferBytesSingle" => copy_single,
        "FillBufferImmediate" => |launch| fill_value(launch, 4, WIDE),
        "FillBufferImmediateLeftOver" => |launch| fill_value(launch, 1, 1),
        "FillBufferMiddle" => |launch| fill_pattern(launch, 4),
        "FillBufferLeftLeftover" | "FillBufferRightLeftover" => |launch| fill_pattern(launch, 1),
        "FillBufferSSHOffset" => fill_group,
        "CopyBufferRectBytes2d" => |launch| copy_rectangles(launch, 2, 1),
        "CopyBufferRectBytesMiddle2d" => |launch| copy_rectangles(launch, 2, WIDE),
        "CopyBufferRectBytes3d" => |launch| copy_rectangles(launch, 3, 1),
        "CopyBufferRectBytesMiddle3d" => |launch| copy_rectangles(launch, 3, WIDE),
        _ => return None,
    })
}

/// Arguments: destination, source, number of elements, destination offset, source offset.
fn copy_region(launch: &Launch<'_>, unit: u64) -> Result<(), PageFault> {
    let items = launch.argument(2).min(launch.global[0]);
    let (to, from) = (
        launch.argument(0) + launch.argument(3),
        launch.argument(1) + launch.argument(4),
    );
    launch.space.copy(to, from, items * unit)
}

/// Arguments: destination, source.
fn copy_single(launch: &Launch<'_>) -> Result<(), PageFault> {
    launch
        .space
        .copy(launch.argument(0), launch.argument(1), launch.global[0])
}

/// Arguments: destination, offset, value.
fn fill_value(launch: &Launch<'_>, size: usize, unit: u64) -> Result<(), PageFault> {
    let value = launch.argument(2).to_le_bytes();
    let to = launch.argument(0) + launch.argument(1);
    launch
        .space
        .fill(to, &value[..size], launch.global[0] * unit)
}

/// Arguments: destination, offset, pattern, pattern length in elements.
fn fill_pattern(launch: &Launch<'_>, element: u64) -> Result<(), PageFault> {
    let length = (launch.argument(3) * element).clamp(1, LONGEST_PATTERN);
    let mut pattern = vec![0; length as usize];
    launch.space.read(launch.argument(2), &mut pattern)?;
    let to = launch.argument(0) + launch.argument(1);
    launch.space.fill(to, &pattern, launch.global[0] * element)
}

/// Arguments: destination, offset, pattern, pattern offset. The pattern length in bytes equals the work-group size.
fn fill_group(launch: &Launch<'_>) -> Result<(), PageFault> {
    let mut pattern = vec![0; launch.local[0] as usize];
    launch
        .space
        .read(launch.argument(2) + launch.argument(3), &mut pattern)?;
    let to = launch.argument(0) + launch.argument(1);
    launch.space.fill(to, &pattern, launch.global[0])
}

/// Arguments: source, destination, source origin, destination origin, source pitches, destination pitches.
fn copy_rectangles(launch: &Launch<'_>, dimensions: usize, unit: u64) -> Result<(), PageFault> {
    // In two dimensions an origin is a vector of two and a pitch a scalar; in three, vectors of four and of two.
    let (origins, pitches) = if dimensions == 3 { (4, 2) } else { (2, 1) };
    let start = |origin: u32, pitch: u32, row: u64, plane: u64| {
        let mut at = launch.part(origin, 0, origins);
        at += (row + launch.part(origin, 1, origins)) * launch.part(pitch, 0, pitches);
        if dimensions == 3 {
            at += (plane + launch.part(origin, 2, origins)) * launch.part(pitch, 1, pitches);
        }
        at
    };
    for plane in 0..launch.global[2] {
        for row in 0..launch.global[1] {
            let from = launch.argument(0) + start(2, 4, row, plane);
            let to = launch.argument(1) + start(3, 5, row, plane);
            launch.space.copy(to, from, launch.global[0] * unit)?;
        }
    }
    Ok(())
}
