//! Random copies of regions, compared with plain bytes.

use std::ptr;

use level_zero_sys as sys;
use level_zero_sys::ZE_RESULT_SUCCESS as OK;
use proptest::prelude::*;

use super::super::runtime::{call, must};
use super::support::{Image, Setup, TYPES, pattern, plain};

/// Bytes of a pixel.
const PIXEL: usize = 4;

/// A region: the first pixel and the size, as parts of what is possible.
type Part = [(prop::sample::Index, prop::sample::Index); 3];

#[derive(Clone, Debug)]
enum Step {
    /// From memory, with gaps of so many pixels behind rows and of rows behind slices.
    Write(usize, Part, usize, usize),
    /// To memory, likewise.
    Read(usize, Part, usize, usize),
    /// From one image to the other.
    Copy(usize, Part, [prop::sample::Index; 3]),
    /// All of one image to the other.
    CopyAll(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let part = || any::<Part>();
    prop_oneof![
        (0..2_usize, part(), 0..3_usize, 0..2_usize)
            .prop_map(|(i, p, r, s)| Step::Write(i, p, r, s)),
        (0..2_usize, part(), 0..3_usize, 0..2_usize)
            .prop_map(|(i, p, r, s)| Step::Read(i, p, r, s)),
        (0..2_usize, part(), any::<[prop::sample::Index; 3]>())
            .prop_map(|(i, p, o)| Step::Copy(i, p, o)),
        (0..2_usize).prop_map(Step::CopyAll),
    ]
}

#[derive(Clone, Copy, Debug)]
struct Region {
    origin: [usize; 3],
    size: [usize; 3],
}

impl Region {
    fn new(image: [usize; 3], part: &Part) -> Self {
        let mut region = Self {
            origin: [0; 3],
            size: [0; 3],
        };
        for axis in 0..3 {
            region.origin[axis] = part[axis].0.index(image[axis]);
            region.size[axis] = 1 + part[axis].1.index(image[axis] - region.origin[axis]);
        }
        region
    }

    fn raw(self) -> sys::ze_image_region_t {
        let [x, y, z] = self.origin.map(|offset| offset as u32);
        let [width, height, depth] = self.size.map(|extent| extent as u32);
        sys::ze_image_region_t {
            originX: x,
            originY: y,
            originZ: z,
            width,
            height,
            depth,
        }
    }

    /// The offset of each row in an array with these pitches, and in its own memory.
    fn rows(self, row: usize, slice: usize) -> impl Iterator<Item = (usize, [usize; 2])> {
        let [x, y, z] = self.origin;
        let [_, height, depth] = self.size;
        (0..depth).flat_map(move |plane| {
            (0..height).map(move |line| {
                let inside = (z + plane) * slice + (y + line) * row + x * PIXEL;
                (inside, [plane, line])
            })
        })
    }
}

fn pitches(image: [usize; 3]) -> (usize, usize) {
    (image[0] * PIXEL, image[0] * PIXEL * image[1])
}

struct World<'a> {
    images: [Image<'a>; 2],
    models: [Vec<u8>; 2],
    list: sys::ze_command_list_handle_t,
    is_array_of_lines: bool,
}

impl World<'_> {
    fn synchronize(&self) {
        assert_eq!(self.images[0].setup.runtime.synchronize(self.list), OK);
    }

    /// Memory for a region: its bytes, and the pitches that are passed.
    fn memory(&self, region: Region, row_gap: usize, slice_gap: usize) -> (Vec<u8>, u32, u32) {
        let [width, height, depth] = region.size;
        let row = (width + row_gap) * PIXEL;
        let slice = row * (height + slice_gap);
        let length = slice * depth;
        // Without a gap, 0 is passed. The rows of a one-dimensional array are its images.
        let row_pitch = if row_gap == 0 { 0 } else { row as u32 };
        let slice_pitch = if self.is_array_of_lines {
            row as u32
        } else if slice_gap == 0 {
            0
        } else {
            slice as u32
        };
        (pattern(length, length), row_pitch, slice_pitch)
    }

    fn write(&mut self, index: usize, part: &Part, row_gap: usize, slice_gap: usize) {
        let image = &self.images[index];
        let region = Region::new(image.size, part);
        let (memory, row_pitch, slice_pitch) = self.memory(region, row_gap, slice_gap);
        let (runtime, raw) = (&image.setup.runtime, region.raw());
        must!(
            runtime,
            zeCommandListAppendImageCopyFromMemoryExt(
                self.list,
                image.handle,
                memory.as_ptr().cast(),
                &raw const raw,
                row_pitch,
                slice_pitch,
                ptr::null_mut(),
                0,
                ptr::null_mut()
            )
        );
        let (row, slice) = pitches(image.size);
        let [width, height, _] = region.size;
        for (inside, [plane, line]) in region.rows(row, slice) {
            let outside = (plane * (height + slice_gap) + line) * (width + row_gap) * PIXEL;
            self.models[index][inside..inside + width * PIXEL]
                .copy_from_slice(&memory[outside..outside + width * PIXEL]);
        }
        self.synchronize();
    }

    fn read(&self, index: usize, part: &Part, row_gap: usize, slice_gap: usize) {
        let image = &self.images[index];
        let region = Region::new(image.size, part);
        let (mut memory, row_pitch, slice_pitch) = self.memory(region, row_gap, slice_gap);
        let mut expected = memory.clone();
        let (runtime, raw) = (&image.setup.runtime, region.raw());
        must!(
            runtime,
            zeCommandListAppendImageCopyToMemoryExt(
                self.list,
                memory.as_mut_ptr().cast(),
                image.handle,
                &raw const raw,
                row_pitch,
                slice_pitch,
                ptr::null_mut(),
                0,
                ptr::null_mut()
            )
        );
        self.synchronize();
        let (row, slice) = pitches(image.size);
        let [width, height, _] = region.size;
        for (inside, [plane, line]) in region.rows(row, slice) {
            let outside = (plane * (height + slice_gap) + line) * (width + row_gap) * PIXEL;
            expected[outside..outside + width * PIXEL]
                .copy_from_slice(&self.models[index][inside..inside + width * PIXEL]);
        }
        assert_eq!(memory, expected);
    }

    fn copy(&mut self, from: usize, part: &Part, to_origin: [prop::sample::Index; 3]) {
        let (source, target) = (&self.images[from], &self.images[1 - from]);
        // A region that fits both images.
        let size = std::array::from_fn(|axis| source.size[axis].min(target.size[axis]));
        let inner = Region::new(size, part);
        let origin = std::array::from_fn(|axis| {
            to_origin[axis].index(target.size[axis] - inner.size[axis] + 1)
        });
        let outer = Region { origin, ..inner };
        let (raw_from, raw_to) = (inner.raw(), outer.raw());
        must!(
            source.setup.runtime,
            zeCommandListAppendImageCopyRegion(
                self.list,
                target.handle,
                source.handle,
                &raw const raw_to,
                &raw const raw_from,
                ptr::null_mut(),
                0,
                ptr::null_mut()
            )
        );
        let ((row, slice), (to_row, to_slice)) = (pitches(source.size), pitches(target.size));
        let length = inner.size[0] * PIXEL;
        let rows = inner.rows(row, slice).zip(outer.rows(to_row, to_slice));
        for ((inside, _), (outside, _)) in rows {
            let bytes = self.models[from][inside..inside + length].to_vec();
            self.models[1 - from][outside..outside + length].copy_from_slice(&bytes);
        }
    }

    fn copy_all(&mut self, from: usize) {
        let (source, target) = (&self.images[from], &self.images[1 - from]);
        let code = call!(
            source.setup.runtime,
            zeCommandListAppendImageCopy(
                self.list,
                target.handle,
                source.handle,
                ptr::null_mut(),
                0,
                ptr::null_mut()
            )
        );
        if source.size == target.size {
            assert_eq!(code, OK);
            self.models[1 - from] = self.models[from].clone();
        } else {
            assert_eq!(code, sys::ZE_RESULT_ERROR_INVALID_SIZE);
        }
    }
}

/// Two images of a type with random dimensions, each of which is random.
fn run(image_type: sys::ze_image_type_t, sizes: [[u32; 3]; 2], steps: &[Step]) {
    let Some(setup) = Setup::get() else { return };
    let images = sizes.map(|[width, height, depth]| {
        let mut desc = plain(image_type);
        desc.width = u64::from(width);
        if image_type == sys::ZE_IMAGE_TYPE_BUFFER {
            desc.width *= PIXEL as u64;
        }
        (desc.height, desc.depth, desc.arraylevels) = (height, depth, depth);
        setup.image(&desc).unwrap()
    });
    let list = setup.runtime.immediate(true);
    let models = [0, 1].map(|seed| pattern(images[seed].pixels() * PIXEL, seed));
    let mut world = World {
        images,
        models,
        list,
        is_array_of_lines: image_type == sys::ZE_IMAGE_TYPE_1DARRAY,
    };
    for (image, model) in world.images.iter().zip(&world.models) {
        assert_eq!(image.append_write(list, model, None), OK);
    }
    world.synchronize();
    for step in steps {
        match step {
            Step::Write(image, part, row, slice) => world.write(*image, part, *row, *slice),
            Step::Read(image, part, row, slice) => world.read(*image, part, *row, *slice),
            Step::Copy(image, part, to) => world.copy(*image, part, *to),
            Step::CopyAll(image) => world.copy_all(*image),
        }
    }
    for (image, model) in world.images.iter().zip(&world.models) {
        let mut bytes = vec![0; model.len()];
        assert_eq!(image.append_read(list, &mut bytes, None), OK);
        world.synchronize();
        assert_eq!(&bytes, model);
    }
    must!(setup.runtime, zeCommandListDestroy(list));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_regions_are_those_of_plain_bytes(
        image_type in prop::sample::select(&TYPES[..]),
        size in any::<[u8; 3]>(),
        other in prop::option::of(any::<[u8; 3]>()),
        steps in prop::collection::vec(step(), 1..12),
    ) {
        let limit = |size: [u8; 3]| size.map(|extent| 1 + u32::from(extent) % 9);
        run(image_type, [limit(size), limit(other.unwrap_or(size))], &steps);
    }
}
