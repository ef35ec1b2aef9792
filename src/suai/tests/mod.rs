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
fn fields<'a>(shape: &'a [i64], strides: Option<&'a [i64]>, offset: i64) -> Fields<'a> {
    Fields {
        version: Some(1),
        pointer: Some(0x10_0000),
        flag: Some(false),
        typestr: Some("<f4"),
        shape: Some(shape),
        strides,
        offset: Some(offset),
        ..Fields::default()
    }
}

fn read(fields: &Fields<'_>) -> Interface {
    Interface::read(fields).unwrap()
}

/// The message of the error for `fields`.
fn refusal(fields: &Fields<'_>) -> String {
    Interface::read(fields).unwrap_err().to_string()
}
