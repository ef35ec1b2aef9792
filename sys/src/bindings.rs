//! The types that bindgen generates, with the comments of the headers, and the names of the result codes.

include!(concat!(env!("OUT_DIR"), "/bindings.rs"));
include!(concat!(env!("OUT_DIR"), "/results.rs"));
