//! Places the nodes of a graph in a square, by forces (Fruchterman and Reingold, 1991).
//!
//! Edges attract with d² / l, all pairs repel with l² / d, where l is the side of a node's share of
//! the square; a weak pull holds separate parts together. Steps shrink to zero. O(nodes² + edges)
//! per iteration, fewer iterations for more nodes.

use crate::random::Random;

/// Pairs to visit in all iterations.
const PAIRS: usize = 60_000_000;

/// Positions `[nodes, 2]` in [0, 1]. `edges` are pairs of nodes; equal seeds give equal positions.
///
/// # Panics
///
/// If an edge names a node that is not below `nodes`.
pub fn layout(nodes: usize, edges: &[u32], seed: u64) -> Vec<f32> {
    let mut random = Random::new(seed);
    let mut places: Vec<[f32; 2]> =
        (0..nodes).map(|_| [random.uniform(), random.uniform()]).collect();
    let iterations = (PAIRS / (nodes * nodes).max(1)).clamp(40, 400);
    let length = 1.0 / (nodes.max(1) as f32).sqrt();
    for iteration in 0..iterations {
        let forces = forces(&places, edges, length);
        let step = 0.1 * (1.0 - iteration as f32 / iterations as f32);
        for (place, force) in places.iter_mut().zip(forces) {
            let size = force[0].hypot(force[1]).max(1e-9);
            let moved = size.min(step) / size;
            *place = [place[0] + force[0] * moved, place[1] + force[1] * moved];
        }
    }
    fit(&places)
}

fn forces(places: &[[f32; 2]], edges: &[u32], length: f32) -> Vec<[f32; 2]> {
    let mut forces: Vec<[f32; 2]> =
        places.iter().map(|at| at.map(|x| (0.5 - x) * length)).collect();
    let mut push = |a: usize, b: usize, strength: &dyn Fn(f32) -> f32| {
        let away = [places[a][0] - places[b][0], places[a][1] - places[b][1]];
        let square = (away[0] * away[0] + away[1] * away[1]).max(1e-9);
        let factor = strength(square);
        for axis in 0..2 {
            forces[a][axis] += away[axis] * factor;
            forces[b][axis] -= away[axis] * factor;
        }
    };
    for a in 0..places.len() {
        for b in 0..a {
            push(a, b, &|square| length * length / square);
        }
    }
    for edge in edges.chunks_exact(2) {
        let [a, b] = [edge[0] as usize, edge[1] as usize];
        if a != b {
            push(a, b, &|square| -square.sqrt() / length);
        }
    }
    forces
}

/// Fills the square.
fn fit(places: &[[f32; 2]]) -> Vec<f32> {
    let (mut low, mut high) = ([f32::INFINITY; 2], [f32::NEG_INFINITY; 2]);
    for place in places {
        for axis in 0..2 {
            low[axis] = low[axis].min(place[axis]);
            high[axis] = high[axis].max(place[axis]);
        }
    }
    let fitted = |place: &[f32; 2]| {
        [0, 1].map(|axis| match high[axis] - low[axis] {
            side if side > 1e-6 => (place[axis] - low[axis]) / side,
            _ => 0.5,
        })
    };
    places.iter().flat_map(fitted).collect()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(0, &[])]
    #[case(1, &[0, 0])]
    #[case(7, &[0, 1, 1, 2])]
    fn places_fill_the_square(#[case] nodes: usize, #[case] edges: &[u32]) {
        let places = layout(nodes, edges, 1);
        assert_eq!(places.len(), 2 * nodes);
        assert!(places.iter().all(|x| (-1e-4..=1.0001).contains(x)), "{places:?}");
        assert_eq!(places, layout(nodes, edges, 1));
    }

    /// Two cliques with one edge between them come apart.
    #[test]
    fn neighbors_are_near() {
        let clique =
            |first: u32| (0..6).flat_map(move |a| (0..a).flat_map(move |b| [first + a, first + b]));
        let edges: Vec<u32> = clique(0).chain(clique(6)).chain([0, 6]).collect();
        let places = layout(12, &edges, 5);
        let distance = |a: usize, b: usize| {
            (places[2 * a] - places[2 * b]).hypot(places[2 * a + 1] - places[2 * b + 1])
        };
        let mean = |near: bool| {
            let pairs = (0..12).flat_map(|a| (0..a).map(move |b| (a, b)));
            let pairs = pairs.filter(|(a, b)| ((a < &6) == (b < &6)) == near);
            let all: Vec<f32> = pairs.map(|(a, b)| distance(a, b)).collect();
            all.iter().sum::<f32>() / all.len() as f32
        };
        assert!(2.0 * mean(true) < mean(false), "{} {}", mean(true), mean(false));
    }
}
