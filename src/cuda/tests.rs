//! Interfaces and chunks; the copies themselves are tested with a stand-in library from Python.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::ops::Range;

use proptest::prelude::*;

use super::chunks::{CHUNK, chunks, staging};
use super::*;
use crate::suai::{self, Layout};

fn fields<'a>() -> Fields<'a> {
    Fields {
        version: Some(3),
        pointer: Some(0x1000),
        typestr: Some("<f4"),
        shape: Some(&[2, 3]),
        ..Fields::default()
    }
}

#[test]
fn strides_count_bytes() {
    let array = Interface::read(&Fields {
        strides: Some(&[-24, 4]),
        ..fields()
    })
    .unwrap();
    assert_eq!(array.layout.extent().bytes(), -24..12);
    assert_eq!(array.order, Order::Nothing);
}

#[test]
fn streams_and_versions() {
    let order = |version, stream| {
        Interface::read(&Fields {
            version: Some(version),
            stream,
            ..fields()
        })
        .map(|array| array.order)
        .map_err(|error| error.to_string())
    };
    for version in 0..=2 {
        assert_eq!(order(version, None), Ok(Order::Context));
    }
    assert_eq!(order(3, Some(1)), Ok(Order::Stream(1)));
    assert_eq!(order(3, Some(2)), Ok(Order::Stream(2)));
    for stream in [0, -1] {
        assert!(order(3, Some(stream)).unwrap_err().contains("'stream' is "));
    }
    for version in [-1, 4] {
        assert!(order(version, None).unwrap_err().contains("0 to 3"));
    }
}

#[test]
fn a_null_pointer_has_no_elements() {
    let null = |shape| {
        Interface::read(&Fields {
            pointer: Some(0),
            shape: Some(shape),
            ..fields()
        })
    };
    assert_eq!(null(&[0, 3]).unwrap().layout.elements(), 0);
    assert!(matches!(
        null(&[1]),
        Err(Error::Field(suai::Error::NullPointer { .. }))
    ));
}

#[test]
fn large_rows_are_divided() {
    let layout = Layout::new(&[2, CHUNK as i64 + 5], Some(&[3 * CHUNK as i64, 1]), 0, 1).unwrap();
    let found: Vec<_> = chunks(&layout).collect();
    let sizes: Vec<usize> = found.iter().map(|chunk| chunk.size).collect();
    assert_eq!(sizes, [CHUNK, 5, CHUNK, 5]);
}

/// The extents of the chunks of 4-byte elements that are copied as a whole, for reading and for writing.
fn whole(shape: &[i64], strides: &[i64]) -> Vec<[Option<Range<isize>>; 2]> {
    let layout = Layout::new(shape, Some(strides), 0, 4).unwrap();
    chunks(&layout)
        .map(|chunk| [chunk.whole(), chunk.whole_without_gaps()])
        .collect()
}

#[test]
fn elements_near_each_other_are_copied_with_the_gaps() {
    assert_eq!(whole(&[100], &[2]), [[Some(0..796), None]]);
    let reversed = Some(-396..4);
    assert_eq!(whole(&[100], &[-1]), [[reversed.clone(), reversed]]);
    let large = whole(&[1 << 20], &[-1]);
    assert_eq!(large.len(), 4);
    assert!(large.iter().flatten().all(Option::is_some));
}

#[test]
fn elements_far_from_each_other_are_copied_in_few_chunks() {
    let many: &[(&[i64], &[i64], usize)] = &[
        (&[100, 100], &[200, 1], 1),
        (&[100], &[100], 1),
        (&[2000], &[-300_000], 1),
        (&[2000, 10], &[1, -300_000], 1),
        (&[2000, 2], &[300_000, 2], 1),
        (&[2000, 2], &[300_000, -1], 1),
        (&[2000, 2000], &[300_000, 1], 16),
        (&[20_000, 63], &[1000, 1], 5),
    ];
    for (shape, strides, count) in many {
        let found = whole(shape, strides);
        assert_eq!(found.len(), *count, "{shape:?} {strides:?}");
        assert!(found.iter().flatten().all(Option::is_none), "{shape:?}");
    }
}

proptest! {
    #[test]
    fn chunks_have_the_elements_in_order(
        (shape, strides) in crate::suai::tests::strided(), itemsize in 1..9usize, scale in prop_oneof![Just(1), Just(70_000i64)],
    ) {
        let strides: Vec<i64> = strides.iter().map(|stride| stride * scale).collect();
        let layout = Layout::new(&shape, Some(&strides), 0, itemsize).unwrap();
        let (buffers, room) = staging(&layout);
        let mut number = 0;
        let mut found = Vec::new();
        for chunk in chunks(&layout) {
            prop_assert_eq!(chunk.first, found.len());
            number += 1;
            prop_assert!(chunk.size <= room);
            let rows = || chunk.pieces.iter().flat_map(|piece| {
                let start = move |row: usize| piece.start + (row * piece.pitch).cast_signed();
                (0..piece.rows).map(move |row| start(row)..start(row) + piece.width.cast_signed())
            });
            if let Some(extent) = chunk.whole() {
                prop_assert!(extent.len() <= room);
                prop_assert!(rows().all(|row| extent.start <= row.start && row.end <= extent.end));
            }
            if let Some(extent) = chunk.whole_without_gaps() && layout.is_distinct() {
                prop_assert_eq!(rows().flatten().collect::<BTreeSet<_>>().len(), extent.len());
            }
            let mut at = 0;
            for piece in chunk.pieces {
                prop_assert_eq!(piece.at, at);
                at += piece.width * piece.rows;
                for row in 0..piece.rows {
                    let start = piece.start + (row * piece.pitch).cast_signed();
                    found.extend(start..start + piece.width.cast_signed());
                }
            }
            prop_assert_eq!(at, chunk.size);
        }
        prop_assert!(number <= 1 || buffers == 2);
        let bytes = |at: isize| at..at + itemsize.cast_signed();
        let elements = crate::suai::tests::addresses(&layout);
        prop_assert_eq!(found, elements.into_iter().flat_map(bytes).collect::<Vec<_>>());
    }
}
