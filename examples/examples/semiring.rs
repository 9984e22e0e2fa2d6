//! A semiring of your own: the cheapest way over a station, by products of (min, +).
//!
//! `cargo run --release -p sparsek-examples --example semiring`

#![allow(clippy::print_stdout)]

use std::error::Error;

use burn::tensor::{Tensor, TensorData};
use cubecl::prelude::*;
use sparsek::{
    distance::{Algebra, Measure, Semiring, infinity, pairwise_distances},
    semiring,
    sparse::Csr,
};
use sparsek_examples::backend::{Choice, open};

/// Adds costs along a way and takes the least of all ways; +∞ where none exists.
struct MinPlus;

// The formulas compile as GPU kernels and as plain Rust.
semiring! {
    #[cube]
    impl Semiring for MinPlus {
        const ALGEBRA: Algebra = Algebra::PRODUCTS;

        fn identity<S: Float>() -> S {
            infinity::<S>()
        }

        fn reduce<S: Float>(a: S, b: S) -> S {
            min(a, b)
        }

        fn product<S: Float>(a: S, b: S, _p: S) -> S {
            a + b
        }
    }
}

const TOWNS: [&str; 5] = ["Aalen", "Bonn", "Celle", "Dresden", "Emden"];
/// Roads in both directions and their costs.
const ROADS: [(usize, usize, f32); 5] =
    [(0, 1, 4.0), (1, 2, 3.0), (2, 4, 2.0), (0, 3, 5.0), (3, 2, 7.0)];

fn main() -> Result<(), Box<dyn Error>> {
    let device = open(Choice::Auto)?.device;
    // A town is 0 from itself: a stored zero is an entry of the matrix.
    let mut entries: Vec<(u32, u32, f32)> = (0..5).map(|town| (town, town, 0.0)).collect();
    for (a, b, cost) in ROADS {
        entries.extend([(a as u32, b as u32, cost), (b as u32, a as u32, cost)]);
    }
    let rows: Vec<u32> = entries.iter().map(|entry| entry.0).collect();
    let columns: Vec<u32> = entries.iter().map(|entry| entry.1).collect();
    let costs: Vec<f32> = entries.iter().map(|entry| entry.2).collect();
    let costs = Tensor::<1>::from_data(TensorData::new(costs, [entries.len()]), &device);
    let roads = Csr::from_coo([5, 5], &rows, &columns, costs)?;

    // Entry (a, b) is the least of roads[a, station] + roads[b, station].
    let ways = pairwise_distances(&roads, None, Measure::semiring::<MinPlus>())?;
    let ways: Vec<f32> = ways.into_data().iter().collect();
    println!("cheapest ways of at most two roads");
    println!("{:8}{}", "", TOWNS.map(|town| format!("{town:>9}")).concat());
    for (town, row) in TOWNS.iter().zip(ways.chunks(5)) {
        let cell = |&cost: &f32| match cost.is_finite() {
            true => format!("{cost:9}"),
            false => format!("{:>9}", "-"),
        };
        println!("{town:8}{}", row.iter().map(cell).collect::<String>());
    }
    Ok(())
}
