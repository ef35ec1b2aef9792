//! Interfaces and chunks; the copies themselves are tested with a stand-in library from Python.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::chunks::{CHUNK, chunks, is_distinct};
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

#[test]
fn narrow_rows_with_small_gaps_are_one_copy() {
    let whole = |shape: &[i64], strides: &[i64], exactly| {
        let layout = Layout::new(shape, Some(strides), 0, 4).unwrap();
        let found: Vec<_> = chunks(&layout).map(|chunk| chunk.whole(exactly)).collect();
        found
    };
    assert_eq!(whole(&[100], &[2], false), [Some(0..796)]);
    assert_eq!(whole(&[100], &[2], true), [None]);
    assert_eq!(whole(&[100], &[-1], true), [Some(-396..4)]);
    let reversed = whole(&[1 << 20], &[-1], true);
    assert_eq!(reversed.len(), 4);
    assert!(reversed.iter().all(Option::is_some));
    // Wide rows, large gaps, and few pieces are CUDA's.
    assert_eq!(whole(&[100, 100], &[200, 1], false), [None]);
    assert_eq!(whole(&[100], &[100], false), [None]);
    assert_eq!(whole(&[4], &[-1], false), [None]);
}

#[test]
fn elements_that_may_overlap_are_not_distinct() {
    let distinct = |shape: &[i64], strides: &[i64]| {
        is_distinct(&Layout::new(shape, Some(strides), 0, 4).unwrap())
    };
    assert!(distinct(&[4, 3, 1], &[-3, 1, 0]));
    assert!(distinct(&[3, 4], &[1, 3]));
    assert!(!distinct(&[2, 2, 2], &[5, 1, 1]));
    assert!(!distinct(&[3, 3], &[2, 1]));
    assert!(!distinct(&[3, 2], &[1, 0]));
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
            prop_assert!(chunk.size <= CHUNK);
            if let Some(extent) = chunk.whole(false) {
                prop_assert!(extent.len() <= CHUNK);
                for piece in &chunk.pieces {
                    let own = piece.extent();
                    prop_assert!(extent.start <= own.start && own.end <= extent.end);
                }
                prop_assert_eq!(chunk.whole(true).is_some(), extent.len() == chunk.size);
                if is_distinct(&layout) && extent.len() == chunk.size {
                    let bytes = chunk.pieces.iter().flat_map(|piece| {
                        (0..piece.rows).flat_map(|row| {
                            let start = piece.start + (row * piece.pitch).cast_signed();
                            start..start + piece.width.cast_signed()
                        })
                    });
                    prop_assert_eq!(bytes.collect::<BTreeSet<_>>().len(), chunk.size);
                }
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
        let bytes = |at: isize| at..at + itemsize.cast_signed();
        let elements = crate::suai::tests::addresses(&layout);
        prop_assert_eq!(found, elements.into_iter().flat_map(bytes).collect::<Vec<_>>());
    }
}
