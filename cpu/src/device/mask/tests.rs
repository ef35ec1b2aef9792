#![allow(clippy::unwrap_used)]

use super::*;

/// The visible ones of two devices with four tiles each.
fn visible(text: &str) -> Vec<(u32, u32)> {
    let mask = Mask::read(text).unwrap();
    let all = (0..2).flat_map(|device| (0..4).map(move |tile| (device, tile)));
    all.filter(|(device, tile)| mask.shows(*device, *tile))
        .collect()
}

#[test]
fn the_examples_of_the_programming_guide_are_read() {
    let first = [(0, 0), (0, 1), (0, 2), (0, 3)];
    let second = [(1, 0), (1, 1), (1, 2), (1, 3)];
    for everything in ["", " ", "0, 1", "1,0"] {
        assert_eq!(visible(everything), [first, second].concat());
    }
    assert_eq!(visible("0"), first);
    assert_eq!(visible("1"), second);
    assert_eq!(visible("0.0"), [(0, 0)]);
    assert_eq!(visible("1.1, 1.2"), [(1, 1), (1, 2)]);
    assert_eq!(
        visible("0.2, 1.3, 1.0, 0.3"),
        [(0, 2), (0, 3), (1, 0), (1, 3)]
    );
    assert_eq!(visible("0.1,0"), first);
    assert_eq!(visible("2,0.9"), []);
}

#[test]
fn anything_else_is_an_error() {
    for text in [
        "gpu",
        ",",
        "0,",
        "0.",
        ".1",
        "0.1.2",
        "-1",
        "+1",
        "1;2",
        "4294967296",
    ] {
        assert_eq!(Mask::read(text), None, "{text}");
    }
}
