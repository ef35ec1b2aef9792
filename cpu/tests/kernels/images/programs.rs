//! A SPIR-V module whose kernels read, write and sample images, assembled here.

use spirv::{AccessQualifier, Capability, Dim, ImageFormat, ImageOperands, StorageClass, Word};

use rspirv::dr::Operand;

use super::super::programs::Program;

/// The types of images, and how kernels have them: dimensions, whether arrayed, and the components of a coordinate.
pub const KINDS: [(&str, Dim, u32, u32); 6] = [
    ("1d", Dim::Dim1D, 0, 1),
    ("1d_array", Dim::Dim1D, 1, 2),
    ("2d", Dim::Dim2D, 0, 2),
    ("2d_array", Dim::Dim2D, 1, 4),
    ("3d", Dim::Dim3D, 0, 4),
    ("buffer", Dim::DimBuffer, 0, 1),
];

/// How kernels read pixels: as floats, signed or unsigned integers.
pub const CLASSES: [&str; 3] = ["f", "i", "u"];

/// The types that the kernels share.
struct Types {
    float: Word,
    ints: Word,
    floats: Word,
}

/// For each kind and class, with `n` the number of the work-item, counted through all rows and planes:
///
/// - `read_KIND_CLASS(image, out, width, height)`: the four channels of pixel n to `out[4 * n..]`, as their bits
/// - `write_KIND_CLASS(image, from, width, height)`: the other way round
///
/// And `sample_1d`, `_2d` and `_3d(image, sampler, at, out)`: the channels at the coordinates `at[4 * n..]` to
/// `out[4 * n..]`.
pub fn module() -> Vec<u8> {
    let mut p = Program::new();
    p.b.set_version(1, 4);
    for capability in [
        Capability::ImageBasic,
        Capability::Sampled1D,
        Capability::SampledBuffer,
    ] {
        p.b.capability(capability);
    }
    let float = p.b.type_float(32, None);
    let types = Types {
        float,
        ints: p.b.type_vector(p.int, 4),
        floats: p.b.type_vector(float, 4),
    };
    for (kind, dim, arrayed, components) in KINDS {
        for class in CLASSES {
            let shape = (dim, arrayed, components);
            read(
                &mut p,
                &types,
                &format!("read_{kind}_{class}"),
                shape,
                class,
            );
            write(
                &mut p,
                &types,
                &format!("write_{kind}_{class}"),
                shape,
                class,
            );
        }
    }
    for (kind, dim, components) in [
        ("1d", Dim::Dim1D, 1),
        ("2d", Dim::Dim2D, 2),
        ("3d", Dim::Dim3D, 4),
    ] {
        sample(&mut p, &types, &format!("sample_{kind}"), dim, components);
    }
    p.bytes()
}

fn image(p: &mut Program, dim: Dim, arrayed: u32, access: AccessQualifier) -> Word {
    let void = p.void;
    p.b.type_image(
        void,
        dim,
        0,
        arrayed,
        0,
        0,
        ImageFormat::Unknown,
        Some(access),
    )
}

/// The work-item's coordinates in three dimensions, as 32-bit integers.
fn coordinates(p: &mut Program) -> [Word; 3] {
    let (int, long) = (p.int, p.long);
    let triple = p.b.type_vector(long, 3);
    let all = p.b.load(triple, None, p.id, None, []).unwrap();
    [0, 1, 2].map(|axis| {
        let one = p.b.composite_extract(long, None, all, [axis]).unwrap();
        p.b.u_convert(int, None, one).unwrap()
    })
}

/// The coordinate of the pixel and the place of its first channel in memory.
fn place(p: &mut Program, components: u32, width: Word, height: Word) -> (Word, Word) {
    let (int, long) = (p.int, p.long);
    let [x, y, z] = coordinates(p);
    let zero = p.b.constant_bit32(int, 0);
    let coordinate = match components {
        1 => x,
        count => {
            let vector = p.b.type_vector(int, count);
            let parts = [x, y, z, zero];
            p.b.composite_construct(vector, None, parts[..count as usize].to_vec())
                .unwrap()
        }
    };
    let four = p.b.constant_bit32(int, 4);
    let rows = p.b.i_mul(int, None, z, height).unwrap();
    let rows = p.b.i_add(int, None, rows, y).unwrap();
    let n = p.b.i_mul(int, None, rows, width).unwrap();
    let n = p.b.i_add(int, None, n, x).unwrap();
    let n = p.b.i_mul(int, None, n, four).unwrap();
    (coordinate, p.b.u_convert(long, None, n).unwrap())
}

/// The address of the four channels behind `index`.
fn channels(p: &mut Program, types: &Types, memory: Word, index: Word) -> Word {
    let first = p.at(memory, index);
    let pointer =
        p.b.type_pointer(None, StorageClass::CrossWorkgroup, types.ints);
    p.b.bitcast(pointer, None, first).unwrap()
}

fn sign(class: &str) -> Option<ImageOperands> {
    match class {
        "i" => Some(ImageOperands::SIGN_EXTEND),
        "u" => Some(ImageOperands::ZERO_EXTEND),
        _ => None,
    }
}

fn read(p: &mut Program, types: &Types, name: &str, shape: (Dim, u32, u32), class: &str) {
    let (dim, arrayed, components) = shape;
    let image = image(p, dim, arrayed, AccessQualifier::ReadOnly);
    let (int, global) = (p.int, p.global);
    let (_, arguments) = p.kernel(name, &[image, global, int, int]);
    let (coordinate, index) = place(p, components, arguments[2], arguments[3]);
    let texel = if class == "f" {
        types.floats
    } else {
        types.ints
    };
    let pixel =
        p.b.image_read(texel, None, arguments[0], coordinate, sign(class), [])
            .unwrap();
    let bits = bits(p, types.ints, pixel, class);
    let out = channels(p, types, arguments[1], index);
    p.b.store(out, bits, None, []).unwrap();
    p.end();
}

fn bits(p: &mut Program, kind: Word, value: Word, class: &str) -> Word {
    if class == "f" {
        p.b.bitcast(kind, None, value).unwrap()
    } else {
        value
    }
}

fn write(p: &mut Program, types: &Types, name: &str, shape: (Dim, u32, u32), class: &str) {
    let (dim, arrayed, components) = shape;
    let image = image(p, dim, arrayed, AccessQualifier::WriteOnly);
    let (int, global) = (p.int, p.global);
    let (_, arguments) = p.kernel(name, &[image, global, int, int]);
    let (coordinate, index) = place(p, components, arguments[2], arguments[3]);
    let from = channels(p, types, arguments[1], index);
    let value = p.b.load(types.ints, None, from, None, []).unwrap();
    let pixel = bits(p, types.floats, value, class);
    p.b.image_write(arguments[0], coordinate, pixel, sign(class), [])
        .unwrap();
    p.end();
}

fn sample(p: &mut Program, types: &Types, name: &str, dim: Dim, components: u32) {
    let image = image(p, dim, 0, AccessQualifier::ReadOnly);
    let sampler = p.b.type_sampler();
    let sampled = p.b.type_sampled_image(image);
    let global = p.global;
    let none = p.b.constant_bit32(types.float, 0);
    let (_, arguments) = p.kernel(name, &[image, sampler, global, global]);
    let n = p.index();
    let long = p.long;
    let two = p.b.constant_bit64(long, 2);
    let index = p.b.shift_left_logical(long, None, n, two).unwrap();
    let at = channels(p, types, arguments[2], index);
    let all = p.b.load(types.ints, None, at, None, []).unwrap();
    let all = p.b.bitcast(types.floats, None, all).unwrap();
    let coordinate = match components {
        1 => p.b.composite_extract(types.float, None, all, [0]).unwrap(),
        2 => {
            let pair = p.b.type_vector(types.float, 2);
            p.b.vector_shuffle(pair, None, all, all, [0, 1]).unwrap()
        }
        _ => all,
    };
    let pair =
        p.b.sampled_image(sampled, None, arguments[0], arguments[1])
            .unwrap();
    let pixel =
        p.b.image_sample_explicit_lod(
            types.floats,
            None,
            pair,
            coordinate,
            ImageOperands::LOD,
            [Operand::IdRef(none)],
        )
        .unwrap();
    let bits = p.b.bitcast(types.ints, None, pixel).unwrap();
    let out = channels(p, types, arguments[3], index);
    p.b.store(out, bits, None, []).unwrap();
    p.end();
}

/// A module with one kernel, `cube`, whose argument is a kind of image that Level Zero does not have.
pub fn cube() -> Vec<u8> {
    let mut p = Program::new();
    p.b.capability(Capability::ImageBasic);
    let image = image(&mut p, Dim::DimCube, 0, AccessQualifier::ReadOnly);
    p.kernel("cube", &[image]);
    p.end();
    p.bytes()
}
