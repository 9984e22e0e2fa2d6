//! How the threshold of a row is found.
//!
//! - [`search`]: on keys, for every method and dtype; always right.
//! - [`gaussian`]: exact, on floats in registers; guesses that counts verify.
//! - [`early_stop`]: RTop-K's Algorithm 2, on floats in registers.
//! - [`normal`]: the model and the bracket that guesses use.
//! - [`register_row`]: a row in registers, as both see it.
//!
//! Above the threshold lie fewer than k elements; those level with it fill up the selection in
//! index order. Floats are tried first; a row without a valid result is searched on keys.

pub(crate) mod early_stop;
pub(crate) mod gaussian;
pub(crate) mod normal;
pub(crate) mod register_row;
pub(crate) mod search;
