//! Which routine goes through which data.

use cubecl::prelude::*;

use super::{Dense, Distance, Inner, Matrix, Needs, Routine, inverted, product, tiled};

/// NVIDIA H200, ms by tiles and by the inverted index: dot of movielens-1m (0.045) 1.72 and 1.80, of scrna-10x (0.069) 1.74 and
/// 2.56, of kos-bow (0.015) 0.72 and 0.47; Minkowski of kos-bow 1.28 and 2.27, of edgar-trigrams (0.0019) 188 and 8.4. Chebyshev by
/// tiles and by merging: kos-bow 1.13 and 11.4, edgar-trigrams 205 and 144; by the inverted index 6.50 and 13.3.
///
/// From how many entries for each place dense tiles are faster than an inverted index: where the entries of one row of a pair
/// are enough, and where those of both are gone through ([`Dense::Halves`]) but the inverted index had to look at near rows
/// again.
const DENSE: f64 = 1.0 / 32.0;
/// The same of sums over the columns of either row: Manhattan of movielens-1m by tiles and by the inverted index 2.24 and 1.92, of
/// scrna-10x 2.21 and 2.65; Hamming 2.47 and 1.91, 2.55 and 2.61.
const DENSE_UNION: f64 = 1.0 / 18.0;
const DENSE_HALVES: f64 = 1.0 / 128.0;
/// The same against merging; the inverted index merges what is undecided, many pairs of kos-bow, and few of edgar-trigrams.
const DENSE_EITHER: f64 = 1.0 / 256.0;

/// From how many entries for each place on a product of whole numbers is faster than tiles or an inverted index: dot of movielens-1m
/// (0.045) by the product 0.88 ms, by tiles 1.70; of kos-bow (0.015) 0.58, by the inverted index 0.46 to 0.55 (NVIDIA H200).
const DENSE_PRODUCT: f64 = 1.0 / 32.0;

/// Whether it matters to the choice for an index of so many entries for each place that values are whole numbers, as
/// [`greatest`](super::greatest) tells.
pub fn asks_for_values(needs: &Needs, density: f64) -> bool {
    needs.inner.is_some_and(|inner| inner != Inner::Ones) && density >= DENSE_PRODUCT
}

fn density(matrix: &Matrix) -> f64 {
    let places = matrix.rows.max(1) as f64 * matrix.cols.max(1) as f64;
    matrix.nnz as f64 / places
}

/// The routine for an index of the second matrix where none is forced. Rows of the first one are compared, if that is known; else
/// the product, for which they must be whole numbers, is not chosen. Given besides is the density of the matrix of which it is a part, if it
/// is one: its parts have one routine, so that they do not round differently.
pub fn choose(
    client: &Client,
    distance: &dyn Distance,
    compared: Option<&Matrix>,
    matrix: &Matrix,
    whole: Option<f64>,
) -> Routine {
    let needs = distance.needs();
    let density = whole.unwrap_or_else(|| density(matrix));
    let suits = |matrix| product::suits(&needs, matrix);
    if density >= DENSE_PRODUCT
        && compared.is_some_and(suits)
        && suits(matrix)
        && product::check(client, &needs, matrix).is_ok()
    {
        return Routine::Product;
    }
    let least = match needs.dense {
        Some(Dense::Products | Dense::Left) if needs.union => DENSE_UNION,
        Some(Dense::Products | Dense::Left) => DENSE,
        Some(Dense::Halves) => DENSE_HALVES,
        Some(Dense::Either) => DENSE_EITHER,
        None => f64::INFINITY,
    };
    if density >= least && tiled::check(client, &needs, matrix).is_ok() {
        Routine::Tiled
    } else if inverted::check(client, &needs, matrix).is_ok() {
        Routine::Inverted
    } else {
        Routine::Merge
    }
}
