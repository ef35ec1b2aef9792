#![allow(clippy::unwrap_used)]

use super::*;

fn layout(variables: &[(&str, &str)]) -> Result<Layout, InvalidVariable> {
    Layout::of_variables(|name| {
        let found = variables.iter().find(|(variable, _)| *variable == name);
        found.map(|(_, value)| OsString::from(value))
    })
}

/// The visible tiles of two GPUs with four tiles each; the CPU is 2, on request.
fn places(hierarchy: &str, mask: &str) -> Vec<(u32, Vec<u32>)> {
    let layout = layout(&[
        (DEVICES, "2+cpu"),
        (TILES, "4"),
        (HIERARCHY, hierarchy),
        (MASK, mask),
    ]);
    let places = layout.unwrap().places();
    places
        .into_iter()
        .map(|place| (place.device, place.tiles))
        .collect()
}

#[test]
fn one_gpu_without_tiles_is_the_default() {
    let default = layout(&[]).unwrap();
    assert_eq!(
        layout(&[(DEVICES, ""), (TILES, ""), (PEER_ACCESS, ""), (MASK, "")]),
        Ok(default.clone())
    );
    assert_eq!(
        (default.gpus, default.tiles, default.peer_access),
        (1, 1, true)
    );
    assert_eq!(default.places().len(), 1);
    assert_eq!(layout(&[(DEVICES, "2+cpu")]).unwrap().places().len(), 3);
}

#[test]
fn ordinals_of_the_mask_are_those_of_the_hierarchy() {
    let all: Vec<u32> = (0..4).collect();
    assert_eq!(
        places("", ""),
        [(0, all.clone()), (1, all.clone()), (2, vec![0])]
    );
    assert_eq!(places("COMPOSITE", "1"), [(1, all.clone())]);
    assert_eq!(places("COMPOSITE", "1.1, 2"), [(1, vec![1]), (2, vec![0])]);
    for flat in ["FLAT", "COMBINED"] {
        assert_eq!(
            places(flat, "0,1,2,3,4,5,6,7"),
            [(0, all.clone()), (1, all.clone())]
        );
        assert_eq!(places(flat, "1, 2, 7"), [(0, vec![1, 2]), (1, vec![3])]);
        assert_eq!(places(flat, "8"), [(2, vec![0])]);
    }
}

#[test]
fn what_cannot_be_used_is_named() {
    for (variable, value, part) in [
        (DEVICES, "0", "a number from 1 to 32"),
        (DEVICES, "many", "a number from 1 to 32"),
        (DEVICES, "-1", "a number from 1 to 32"),
        (DEVICES, "99999999999", "a number from 1 to 32"),
        (DEVICES, "1+gpu", "with or without +cpu"),
        (DEVICES, "+cpu", "with or without +cpu"),
        (TILES, "17", "a number from 1 to 16"),
        (PEER_ACCESS, "perhaps", "no or off"),
        (HIERARCHY, "flat", "COMPOSITE, FLAT or COMBINED"),
        (MASK, "first", "devices 0 to 0, with"),
        (MASK, "1", "devices 0 to 0, with"),
    ] {
        let error = layout(&[(variable, value)]).unwrap_err().to_string();
        assert!(
            error.contains(&format!("{variable}={value:?}")) && error.contains(part),
            "{error}"
        );
    }
    let tiles = [(TILES, "2"), (MASK, "0.2")];
    assert!(
        layout(&tiles)
            .unwrap_err()
            .to_string()
            .contains("or tiles 0.0 to 0.1")
    );
    // As the programming guide says of an ordinal with a point.
    assert!(layout(&[(TILES, "2"), (HIERARCHY, "FLAT"), (MASK, "0.0")]).is_err());
}
