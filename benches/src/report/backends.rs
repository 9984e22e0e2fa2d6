//! Other backends beside CUDA.

use super::{
    records::{Benches, Group, groups, split},
    table::{Table, extremes},
};
use crate::chart::significant;

/// A backend, and the one it is compared with.
const PAIRS: [(&str, &str, &str); 2] =
    [("vulkan", "cuda", "Vulkan over CUDA"), ("webgpu", "vulkan", "WebGPU (WGSL) over Vulkan")];
const BENCHES: [(&str, &str); 2] = [("topk", "Row-wise top-k"), ("spmm", "Products with a graph")];
const CASE: [&str; 7] = ["case", "dtype", "form", "method", "routine", "dist", "backend"];

/// Least and greatest quotients of the cases that both backends have.
pub fn backends(benches: &Benches) -> String {
    let mut table = Table::new(["bench", "time of", "cases", "least", "greatest"]);
    for (bench, title) in BENCHES {
        let Some(lines) = benches.get(bench) else {
            continue;
        };
        let groups = groups(split(lines).0, &CASE);
        for (name, base, compared) in PAIRS {
            let of = |backend: &'static str| {
                groups.iter().filter(move |group| group.text("backend") == backend)
            };
            let quotient = |group: &Group| {
                let fields = &CASE[..CASE.len() - 1];
                let other = of(base).find(|other| other.0[0].agrees(group.0[0], fields))?;
                Some(group.median("ms")? / other.median("ms")?)
            };
            let quotients: Vec<f64> = of(name).filter_map(quotient).collect();
            if let Some((least, most)) = extremes(&quotients) {
                let [least, most] = [least, most].map(significant);
                table.row([
                    title.into(),
                    compared.into(),
                    quotients.len().to_string(),
                    least,
                    most,
                ]);
            }
        }
    }
    table.markdown()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::records::parse;

    #[test]
    fn backends_are_compared_case_by_case() {
        let line = |case: &str, backend: &str, ms: f64| {
            let form = if ms < 9.0 { "pairs" } else { "sorted" };
            format!(
                "{{\"case\":\"{case}\",\"backend\":\"{backend}\",\"form\":\"{form}\",\
                 \"ms\":{ms}}}\n"
            )
        };
        let text = [
            line("a", "cuda", 1.0),
            line("b", "cuda", 2.0),
            line("b", "cuda", 9.0),
            line("a", "vulkan", 1.5),
            line("b", "vulkan", 2.2),
            line("c", "vulkan", 9.0),
        ];
        let benches: Benches = [("topk".to_string(), parse(&text.concat()).unwrap())].into();
        let table = backends(&benches);
        assert!(
            table.contains("| Row-wise top-k | Vulkan over CUDA | 2 | 1.10 | 1.50 |\n"),
            "{table}"
        );
        assert!(!table.contains("WebGPU"));
    }
}
