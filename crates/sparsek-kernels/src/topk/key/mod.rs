//! Order-preserving unsigned keys. `-0` and `+0` share a key, all NaN share the greatest, `-inf`
//! has key 0. "Ordered" keys are inverted for the least.

mod dtype;
mod element;
mod float;
mod integer;

pub(crate) use dtype::{is_single, require_element, require_index, with_element};
pub(crate) use element::{
    Element, MINUS_INF, NAN, PLUS_INF, ordered_is_finite, ordered_key, ordered_refined,
    ordered_rough, ordered_within, ordered_zero, short_key, short_word,
};
