//! Named cases, random cases compared with a model, and fuzzing.
#![allow(clippy::unwrap_used)]

mod dictionary;
mod fuzz;
mod items;
mod layouts;
mod model;
mod records;
mod views;

pub(crate) use model::strided;
pub(crate) use views::addresses;

use super::*;

/// The fields of a well-formed array of four-byte floats.
fn fields(shape: &[i64], strides: Option<&[i64]>, offset: i64) -> Fields {
    Fields {
        version: Some(1),
        pointer: Some(0x10_0000),
        flag: Some(false),
        typestr: Some("<f4".to_owned()),
        shape: Some(shape.to_vec()),
        strides: strides.map(<[i64]>::to_vec),
        offset: Some(offset),
        ..Fields::default()
    }
}

fn read(fields: &Fields) -> Interface {
    Interface::read(fields).unwrap()
}

/// The message of the error for `fields`.
fn refusal(fields: &Fields) -> String {
    Interface::read(fields).unwrap_err().to_string()
}
