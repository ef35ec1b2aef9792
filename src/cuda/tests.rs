//! Interfaces and chunks; the copies themselves are tested with a stand-in library from Python.
#![allow(clippy::unwrap_used)]

use std::ops::Range;

use proptest::prelude::*;

use super::chunks::{CHUNK, chunks};
use super::*;
use crate::suai::{self, Fields, Layout};

fn fields() -> Fields {
    Fields {
        version: Some(3),
        pointer: Some(0x1000),
        typestr: Some("<f4".to_owned()),
        shape: Some(vec![2, 3]),
        ..Fields::default()
    }
}

#[test]
fn strides_count_bytes() {
    let strided = Fields {
        strides: Some(vec![-24, 4]),
        ..fields()
    };
    let array = Interface::read(&strided, None).unwrap();
    assert_eq!(array.layout.extent(), -24..12);
    assert_eq!(array.order, Order::Nothing);
}

#[test]
fn streams_and_versions() {
    let order = |version, stream| {
        let fields = Fields {
            version: Some(version),
            ..fields()
        };
        Interface::read(&fields, stream)
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
    let null = |shape: &[i64]| {
        let fields = Fields {
            pointer: Some(0),
            shape: Some(shape.to_vec()),
            ..fields()
        };
        Interface::read(&fields, None)
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

/// The extents of the chunks of 4-byte elements that are copied as a whole.
fn whole(shape: &[i64], strides: &[i64]) -> Vec<Option<Range<isize>>> {
    let layout = Layout::new(shape, Some(strides), 0, 4).unwrap();
    chunks(&layout).map(|chunk| chunk.whole()).collect()
}

#[test]
fn elements_near_each_other_are_copied_with_the_gaps() {
    assert_eq!(whole(&[100], &[2]), [Some(0..796)]);
    assert_eq!(whole(&[100], &[-1]), [Some(-396..4)]);
    let large = whole(&[1 << 20], &[-1]);
    assert_eq!(large.len(), 4);
    assert!(large.iter().all(Option::is_some));
}

#[test]
fn elements_far_from_each_other_are_copied_by_rows() {
    let many: &[(&[i64], &[i64], usize)] = &[
        (&[100, 100], &[200, 1], 1),
        (&[100], &[100], 1),
        (&[2000], &[-300_000], 2000),
        (&[2000, 2000], &[300_000, 1], 16),
        (&[20_000, 63], &[1000, 1], 5),
    ];
    for (shape, strides, count) in many {
        let found = whole(shape, strides);
        assert_eq!(found.len(), *count, "{shape:?} {strides:?}");
        assert!(found.iter().all(Option::is_none), "{shape:?}");
    }
}

proptest! {
    #[test]
    fn chunks_have_the_elements_in_order(
        (shape, strides) in crate::suai::tests::strided(), itemsize in 1..9usize, scale in prop_oneof![Just(1), Just(70_000i64)],
    ) {
        let strides: Vec<i64> = strides.iter().map(|stride| stride * scale).collect();
        let layout = Layout::new(&shape, Some(&strides), 0, itemsize).unwrap();
        let mut found = Vec::new();
        for chunk in chunks(&layout) {
            prop_assert_eq!(chunk.first, found.len());
            prop_assert!(chunk.size <= CHUNK.min(layout.nbytes()));
            let rows: Vec<_> = chunk.pieces.iter().flat_map(|piece| {
                let start = move |row: usize| piece.start + (row * piece.pitch).cast_signed();
                (0..piece.rows).map(move |row| start(row)..start(row) + piece.width.cast_signed())
            }).collect();
            let moved: Vec<_> = chunk.rows().collect();
            prop_assert_eq!(rows.len(), moved.len());
            let mut at = 0;
            for (row, (spread, packed)) in rows.iter().zip(moved) {
                prop_assert_eq!(packed, at..at + row.len());
                at += row.len();
                if let Some(extent) = chunk.whole() {
                    prop_assert!(extent.len() <= CHUNK.min(layout.extent().len()));
                    prop_assert!(extent.start <= row.start && row.end <= extent.end);
                    prop_assert_eq!(spread, row.start.abs_diff(extent.start)..row.end.abs_diff(extent.start));
                }
            }
            prop_assert_eq!(at, chunk.size);
            found.extend(rows.into_iter().flatten());
        }
        let bytes = |at: isize| at..at + itemsize.cast_signed();
        let elements = crate::suai::tests::addresses(&layout);
        prop_assert_eq!(found, elements.into_iter().flat_map(bytes).collect::<Vec<_>>());
    }
}
