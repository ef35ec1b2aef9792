//! Tests of the pool.

mod models;
