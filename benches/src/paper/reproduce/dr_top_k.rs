//! Dr. Top-k, Section 6, on its data: u32, uniform (UD), normal (ND) and customized (CD).
//!
//! The published figures are of a V100S, as the text prints them; charts without numbers have
//! none.

use super::Session;
use crate::{
    case::VectorCase,
    vector::{HeldVector, Measured, PaperData, ShardArguments, is_refused, measure_shards},
};

/// The paper's vector.
const LENGTH: u32 = 30;
/// The paper's k of Fig. 17.
const K: usize = 1 << 10;
/// The k of Fig. 20.
const WORKLOAD_K: usize = 1 << 19;
/// The k of Fig. 22, and the greatest of Figs. 18 and 21.
const GREATEST_K: usize = 1 << 24;

const SELECTIONS: [&str; 3] = ["radix", "bucket", "bitonic"];

pub fn run(session: &Session) -> anyhow::Result<()> {
    let of_uniform = ["Fig. 17", "Fig. 22", "Fig. 21", "Fig. 15", "Fig. 18"];
    for data in PaperData::ALL {
        let figures = if data == PaperData::Uniform { &of_uniform[..] } else { &of_uniform[4..] };
        if !figures.iter().any(|figure| session.wants(figure)) {
            continue;
        }
        let input = data.vector(1 << LENGTH);
        let vectors = Vectors { session, data, held: HeldVector::new(session.client()?, &input) };
        if data == PaperData::Uniform {
            vectors.algorithms()?;
            vectors.delegates_of_subranges()?;
            vectors.workload_over_k()?;
            vectors.staged()?;
        }
        vectors.speedups()?;
    }
    workload_over_length(session)?;
    several_devices(session)
}

struct Vectors<'a> {
    session: &'a Session<'a>,
    data: PaperData,
    held: HeldVector<'a, u32>,
}

impl Vectors<'_> {
    /// None if the plan refuses the method.
    fn measure(&self, method: &str, k: usize) -> anyhow::Result<Option<Measured>> {
        match self.held.measure(method, k) {
            Err(error) if is_refused(&error) => {
                say!("{method}, k = {k}: left out, {error}");
                Ok(None)
            }
            measured => measured.map(Some),
        }
    }

    fn ms(&self, method: &str, k: usize) -> anyhow::Result<Option<f64>> {
        let measured = self.measure(method, k)?;
        Ok(measured.map(|measured| measured.times.median.ms))
    }

    /// A row of milliseconds for each method that the plan accepts.
    fn times(
        &self,
        [figure, quantity]: [&str; 2],
        k: usize,
        methods: &[(&str, Option<f64>)],
    ) -> anyhow::Result<()> {
        if !self.session.begins(figure, quantity) {
            return Ok(());
        }
        for &(method, published) in methods {
            if let Some(ms) = self.ms(method, k)? {
                self.session.row([figure, quantity, method], published, ms)?;
            }
        }
        Ok(())
    }

    /// Fig. 17 at its greatest length.
    fn algorithms(&self) -> anyhow::Result<()> {
        let methods = [
            ("whole/radix", Some(41.3)),
            ("whole/bucket", Some(38.4)),
            ("whole/bitonic", Some(127.0)),
            ("delegates/radix", Some(6.4)),
            ("delegates/bucket", Some(7.0)),
            ("delegates/bitonic", Some(7.0)),
            ("delegates", None),
        ];
        self.times(["Fig. 17", "ms of n = 2^30, k = 1024"], K, &methods)
    }

    /// Fig. 18: the paper prints the range over k.
    fn speedups(&self) -> anyhow::Result<()> {
        let (figure, quantity) = ("Fig. 18", "speed-up by delegates, n = 2^30");
        if !self.session.begins(figure, quantity) {
            return Ok(());
        }
        let most = if self.session.arguments.quick { 1 << 20 } else { GREATEST_K };
        for selection in SELECTIONS {
            for k in [1, 1 << 10, 1 << 20, GREATEST_K].into_iter().filter(|&k| k <= most) {
                let whole = self.ms(&format!("whole/{selection}"), k)?;
                let delegates = self.ms(&format!("delegates/{selection}"), k)?;
                if let (Some(whole), Some(delegates)) = (whole, delegates) {
                    let case = format!("{}, {selection}, k = {k}", self.data.name());
                    let published = published_speedup(self.data, selection, k);
                    self.session.row([figure, quantity, &case], published, whole / delegates)?;
                }
            }
        }
        Ok(())
    }

    /// Fig. 22.
    fn delegates_of_subranges(&self) -> anyhow::Result<()> {
        let methods = [
            ("delegates/filter", Some(54.2)),
            ("delegates/beta:2/unfiltered", Some(35.9)),
            ("delegates/beta:2/filter", Some(24.7)),
            ("delegates", None),
        ];
        self.times(["Fig. 22", "ms of n = 2^30, k = 2^24"], GREATEST_K, &methods)
    }

    /// Fig. 21 at both ends.
    fn workload_over_k(&self) -> anyhow::Result<()> {
        let (figure, quantity) = ("Fig. 21", "percent of the vector in both selections, n = 2^30");
        if !self.session.begins(figure, quantity) {
            return Ok(());
        }
        for (k, published) in [(1, 0.0015), (GREATEST_K, 15.91)] {
            for method in ["delegates/beta:2", "delegates"] {
                if let Some(measured) = self.measure(method, k)? {
                    let case = format!("k = {k}, {method}");
                    let share = percent(&measured);
                    self.session.row([figure, quantity, &case], Some(published), share)?;
                }
            }
        }
        Ok(())
    }

    /// Delegates through shared memory (Section 5.3) beside neighboring loads.
    fn staged(&self) -> anyhow::Result<()> {
        // Several delegates are never staged.
        let methods = [
            ("alpha:5/beta:1", None),
            ("alpha:5/beta:2", None),
            ("alpha:5/beta:3", None),
            ("alpha:5/beta:4", None),
            ("alpha:5/staged", None),
        ];
        self.times(["Fig. 15", "ms of subranges of 2^5, n = 2^30, k = 1024"], K, &methods)
    }
}

/// The ends of the printed ranges, where the text names their k.
fn published_speedup(data: PaperData, selection: &str, k: usize) -> Option<f64> {
    match (selection, data, k) {
        ("radix", PaperData::Customized, GREATEST_K) => Some(1.1),
        ("radix", _, GREATEST_K) => Some(1.7),
        ("bucket" | "bitonic", _, 1) => Some(1.1),
        ("bitonic", _, GREATEST_K) => Some(473.0),
        _ => None,
    }
}

/// Fig. 20 at both ends.
fn workload_over_length(session: &Session) -> anyhow::Result<()> {
    let (figure, quantity) = ("Fig. 20", "percent of the vector in both selections, k = 2^19");
    if !session.begins(figure, quantity) {
        return Ok(());
    }
    for (exponent, published) in [(22, 76.06), (LENGTH, 0.83)] {
        let input = PaperData::Uniform.vector(1 << exponent);
        let held = HeldVector::new(session.client()?, &input);
        for method in ["delegates/beta:2", "delegates"] {
            let share = percent(&held.measure(method, WORKLOAD_K)?);
            let case = format!("n = 2^{exponent}, {method}");
            session.row([figure, quantity, &case], Some(published), share)?;
        }
    }
    Ok(())
}

fn percent(measured: &Measured) -> f64 {
    100.0 * measured.stats.share()
}

/// Table 2 for vectors that fit into one device, if there are two.
fn several_devices(session: &Session) -> anyhow::Result<()> {
    let (figure, quantity) = ("Table 2", "speed-up by two devices, k = 128");
    if !session.begins(figure, quantity) {
        return Ok(());
    }
    if session.backend.devices().len() < 2 {
        say!("left out, there is one device");
        return Ok(());
    }
    let case = VectorCase::new(1 << LENGTH, 128);
    let arguments = ShardArguments::two(session.arguments.backend);
    session.row([figure, quantity, "n = 2^30"], Some(1.6), measure_shards(&arguments, &case)?)
}
