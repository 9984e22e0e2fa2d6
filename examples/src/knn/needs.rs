//! Memory that a search needs.
use std::{error::Error, fmt};

use sparsek::{
    distance::{AnySamples, Measure, Metric},
    io::memory::{self, Bytes, product},
};

use crate::search::{NEIGHBOR, Target};

/// Bytes of a value or distance, and of an id.
const VALUE: usize = size_of::<f32>();
const ID: usize = size_of::<u32>();
/// Bytes of a sparse entry, and of its copy for distances.
const ENTRY: usize = VALUE + ID;
const COPY: usize = 12;
/// Most bytes of a batch of distances between sparse rows, and of bounds between dense rows.
const DISTANCES: u128 = 512 << 20;
const BOUNDS: u128 = 1 << 30;
/// The share of free memory that a batch of distances takes at most.
const FREE_SHARE: u128 = 8;

/// Rows of a file.
pub struct Input {
    pub rows: AnySamples,
    /// Stored entries, or elements other than 0.
    pub entries: usize,
}

impl Input {
    fn is_dense(&self) -> bool {
        matches!(self.rows, AnySamples::Dense(_))
    }

    fn sparse_bytes(&self) -> u128 {
        self.offset_bytes() + product(&[self.entries, ENTRY])
    }

    fn offset_bytes(&self) -> u128 {
        product(&[self.rows.rows() + 1, ID])
    }

    fn device_bytes(&self) -> u128 {
        match self.is_dense() {
            true => product(&[self.rows.rows(), self.rows.cols(), VALUE]),
            false => self.sparse_bytes(),
        }
    }

    /// Patterns stay on the host too.
    fn host_bytes(&self) -> u128 {
        let pattern = self.offset_bytes() + product(&[self.entries, ID]);
        self.device_bytes() + if self.is_dense() { 0 } else { pattern }
    }

    /// As a matrix, where dense rows become one.
    fn converted_bytes(&self, is_direct: bool) -> u128 {
        if self.is_dense() && !is_direct { self.sparse_bytes() } else { 0 }
    }
}

/// A search to begin.
pub struct Plan<'a> {
    pub index: &'a Input,
    pub query: Option<&'a Input>,
    pub metric: Metric,
    pub target: Target,
    /// Queries per batch.
    pub batch: usize,
    /// Shards of the index, and how many of them one device has at most.
    pub shards: [usize; 2],
    /// Whether devices have memory of their own.
    pub on_device: bool,
    /// Bytes that the fullest device has left before the search.
    pub free: Option<u64>,
}

/// Bytes on the host or a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Parts {
    index: u128,
    queries: u128,
    /// None if only the search finds out.
    results: Option<u128>,
    work: u128,
}

impl Parts {
    fn total(&self) -> u128 {
        self.index + self.queries + self.results.unwrap_or(0) + self.work
    }
}

impl fmt::Display for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [index, queries, work] = [self.index, self.queries, self.work].map(Bytes);
        write!(f, "index {index}, queries {queries}, results ")?;
        match self.results {
            Some(results) => write!(f, "{}", Bytes(results))?,
            None => f.write_str("unknown")?,
        }
        write!(f, ", work {work}")
    }
}

/// Bytes that a search needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    host: Parts,
    /// The fullest device, if it has memory of its own.
    device: Option<Parts>,
    /// Bytes that it had left.
    free: Option<u64>,
}

impl Needs {
    pub fn of(plan: &Plan) -> Self {
        let Plan { index, query, .. } = *plan;
        let asked = query.unwrap_or(index);
        let [shards, most] = plan.shards;
        let (rows, queries) = (index.rows.rows(), asked.rows.rows());
        let batch = plan.batch.min(queries);
        let is_direct = index.is_dense()
            && asked.is_dense()
            && matches!(plan.target, Target::Nearest(_))
            && Measure::from(plan.metric).searches_dense();
        let results = |rows: usize| match plan.target {
            Target::Nearest(k) => Some(product(&[rows, k.min(index.rows.rows()), NEIGHBOR])),
            Target::Radius(_) => None,
        };
        // Angles keep unit rows and factors; differences a copy, made from another.
        let [copies, limit] = match is_direct {
            true => [2 * index.device_bytes(), BOUNDS],
            false => [product(&[index.entries, COPY]), DISTANCES],
        };
        let limit = plan.free.map_or(limit, |free| limit.min(u128::from(free) / FREE_SHARE));
        let copies = share(copies + index.converted_bytes(is_direct), most, shards);
        let distances = product(&[batch, rows.div_ceil(shards), VALUE]).min(limit);
        let device = Parts {
            index: share(index.device_bytes(), most, shards),
            queries: share(asked.device_bytes() + asked.converted_bytes(is_direct), batch, queries),
            results: results(batch),
            work: copies + distances,
        };
        let host = Parts {
            index: index.host_bytes(),
            queries: query.map_or(0, Input::host_bytes),
            results: results(queries),
            work: if plan.on_device { 0 } else { device.work },
        };
        Self { host, device: plan.on_device.then_some(device), free: plan.free }
    }

    /// Refuses more than the limit of the host, or than a device had left.
    pub fn check(&self) -> Result<(), Box<dyn Error>> {
        memory::check("the search", self.host.total())?;
        match (self.device.map(|device| device.total()), self.free) {
            (Some(needed), Some(free)) if needed > u128::from(free) => {
                Err(TooLarge { needed, free }.into())
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Needs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "needs {} on the host ({})", Bytes(self.host.total()), self.host)?;
        match &self.device {
            Some(device) => {
                write!(f, " and {} on each device ({device})", Bytes(device.total()))
            }
            None => Ok(()),
        }
    }
}

/// More than a device has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge {
    needed: u128,
    free: u64,
}

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (needed, free) = (Bytes(self.needed), Bytes(u128::from(self.free)));
        write!(
            f,
            "the search needs {needed} on each device, but {free} are free; --devices shares the \
             rows, --query-batch takes fewer at a time"
        )
    }
}

impl Error for TooLarge {}

/// The bytes of some of all rows.
fn share(bytes: u128, some: usize, all: usize) -> u128 {
    bytes * some as u128 / all.max(1) as u128
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use burn::tensor::{Device, Tensor};
    use rstest::rstest;
    use sparsek::sparse::Csr;

    use super::*;

    /// 40 rows of 6 columns, with two ones each.
    fn input(dense: bool) -> Input {
        let device = Device::flex();
        let row = Tensor::<2>::from_data([[1.0, 0.0, 0.0, 0.0, 1.0, 0.0]], &device);
        let rows = row.repeat_dim(0, 40);
        let rows = match dense {
            true => rows.into(),
            false => Csr::from_dense(rows).unwrap().into(),
        };
        Input { rows, entries: 80 }
    }

    fn plan(index: &Input) -> Plan<'_> {
        Plan {
            index,
            query: None,
            metric: Metric::Euclidean,
            target: Target::Nearest(3),
            batch: 10,
            shards: [1, 1],
            on_device: true,
            free: None,
        }
    }

    #[rstest]
    #[case::dense(true, [960, 960, 240, 1920 + 1600])]
    #[case::sparse(false, [1288, 804, 201, 960 + 1600])]
    fn bytes_follow_rows_and_entries(#[case] dense: bool, #[case] expected: [u128; 4]) {
        let needs = Needs::of(&plan(&input(dense)));
        let [host, index, queries, work] = expected;
        let on_host = Parts { index: host, queries: 0, results: Some(1440), work: 0 };
        let device = Parts { index, queries, results: Some(360), work };
        assert_eq!(needs, Needs { host: on_host, device: Some(device), free: None });
        let shown = needs.to_string();
        assert!(shown.contains("on each device") && shown.contains("results 1.4 KiB"), "{shown}");
    }

    #[test]
    fn kinds_that_meet_also_need_a_matrix() {
        let (dense, sparse) = (input(true), input(false));
        let mixed = Needs::of(&Plan { query: Some(&sparse), ..plan(&dense) });
        assert_eq!(mixed.device.unwrap().work, 804 + 960 + 1600);
    }

    #[test]
    fn shards_divide_the_index() {
        let index = input(true);
        let half = Needs::of(&Plan { shards: [2, 1], ..plan(&index) }).device.unwrap();
        assert_eq!((half.index, half.work), (480, 960 + 800));
        let both = Needs::of(&Plan { shards: [2, 2], ..plan(&index) }).device.unwrap();
        assert_eq!((both.index, both.work), (960, 1920 + 800));
    }

    #[test]
    fn a_full_device_is_refused_with_both_figures() {
        let of = |free| Needs::of(&Plan { free, ..plan(&input(true)) });
        of(None).check().unwrap();
        of(Some(12_800)).check().unwrap();
        let refused = of(Some(1024)).check().unwrap_err().to_string();
        assert!(refused.contains("needs 3.5 KiB") && refused.contains("1.0 KiB are"), "{refused}");
        let on_host = Needs::of(&Plan { on_device: false, free: Some(0), ..plan(&input(true)) });
        on_host.check().unwrap();
        assert!(!on_host.to_string().contains("device"));
    }
}
