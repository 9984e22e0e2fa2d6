//! ```text
//! dx[j, s] = cols[j] Σ w[e] rows[i] dy[i, columns[j, s]]     over the entries e = (i, j)
//! ```

pub(crate) mod block_sums;
pub(crate) mod by_column;
pub(crate) mod column_blocks;
pub(crate) mod gathered;
pub(crate) mod shared;
pub(crate) mod two_pass;
pub(crate) mod types;
