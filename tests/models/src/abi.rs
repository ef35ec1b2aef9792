//! Replaces the API's result codes; the models have no errors.

pub mod result {
    pub type ZeResult<T = ()> = Result<T, ()>;
}
