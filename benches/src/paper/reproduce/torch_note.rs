//! The note on torch.topk: radix selection of rows, beside the routine that is chosen.

use super::Session;
use crate::{
    case::RowCase,
    topk::{Form, Problem, ready, seeded_rows},
};
use sparsek_kernels::topk::Routine;
use sparsek_tests::data::Distribution;

/// Columns and k; rows fill the same memory.
const CASES: [(usize, usize); 4] = [(256, 32), (1024, 64), (8192, 128), (131_072, 2048)];
const ELEMENTS: usize = 1 << 26;

pub fn run(session: &Session) -> anyhow::Result<()> {
    session.client()?;
    let (figure, quantity) = ("Radix select", "ms");
    if !session.begins(figure, quantity) {
        return Ok(());
    }
    let elements = if session.arguments.quick { ELEMENTS / 4 } else { ELEMENTS };
    for dist in [Distribution::Normal, Distribution::Bits] {
        for (cols, k) in CASES {
            let case = RowCase::new(elements / cols, cols, k);
            let input = seeded_rows::<f32>(case.rows, cols, dist, 0);
            for routine in [Some(Routine::Radix), None] {
                let mut problem = Problem::new(&case, Form::Pairs, &input);
                problem.routine = routine;
                let ms = ready(&session.backend, &problem)?.measure()?.median.ms;
                let routine = routine.map_or("chosen", Routine::name);
                let name = format!("{case} f32 {}, {routine}", dist.name());
                session.row([figure, quantity, &name], None, ms)?;
            }
        }
    }
    Ok(())
}
