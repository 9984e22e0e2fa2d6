//! The chapter of the guide with figures of papers beside ours.

use super::{
    distances,
    records::{Benches, groups, values},
    table::{Table, cell},
};

const SEMIRINGS: &str = "semirings";
/// Papers by their name in records, in the order of the chapter.
const PAPERS: [(&str, &str); 4] = [
    ("rtop-k", "RTop-K"),
    ("dr-top-k", "Dr. Top-k"),
    (SEMIRINGS, "Sparse semirings"),
    ("torch-note", "The note on torch.topk"),
];

const HEAD: &str = "\
# The papers' figures, measured

`sparsek-bench report` writes this chapter from the records of `sparsek-bench paper NAME --backend
cuda --quick --peers FILE`, which takes minutes. Each case was compared with an oracle before it was
timed.

- Published figures are as printed, of the paper's GPU: RTop-K an A6000, Dr. Top-k a V100S, sparse
  semirings a V100. A cell is empty if the paper prints a chart without numbers.
- A ratio tells cards apart as much as code; speed-ups do not depend on the card as much.
- [papers.md](https://github.com/sparsek/sparsek/blob/main/docs/papers.md) lists every deviation.
";

/// The chapter; none without records.
pub fn chapter<'a>(devices: impl Iterator<Item = (String, &'a Benches, String)>) -> Option<String> {
    let mut text = String::new();
    for (title, benches, path) in devices {
        let Some(lines) = benches.get("paper") else {
            continue;
        };
        let groups = groups(lines, &["paper", "figure", "quantity", "case", "backend"]);
        for (paper, name) in PAPERS {
            let of_paper = groups.iter().filter(|group| group.text("paper") == paper);
            let of_paper: Vec<_> = of_paper.collect();
            if of_paper.is_empty() {
                continue;
            }
            text += &format!("## {name}, {title}\n\nRecords: `{path}`.\n\n");
            for figure in values(&groups, "figure") {
                let of_figure = of_paper.iter().filter(|group| group.text("figure") == figure);
                let of_figure: Vec<_> = of_figure.collect();
                let Some(first) = of_figure.first() else {
                    continue;
                };
                text += &format!("### {figure}: {}\n\n", first.text("quantity"));
                let mut table = Table::new(["case", "backend", "paper", "ours", "ours / paper"]);
                for group in of_figure {
                    let (published, ours) = (group.median("published"), group.median("ours"));
                    let ratio = ours.zip(published).map(|(ours, published)| ours / published);
                    table.row([
                        group.text("case").into(),
                        group.text("backend").into(),
                        cell(published),
                        cell(ours),
                        cell(ratio),
                    ]);
                }
                text += &table.markdown();
            }
            if paper == SEMIRINGS {
                let lines = benches.get("distance");
                text += &lines.map_or(String::new(), |lines| distances::of_paper(lines));
            }
        }
    }
    (!text.is_empty()).then(|| format!("{HEAD}\n{}\n", text.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::records;

    #[test]
    fn figures_of_papers_become_a_chapter() {
        let line = |case: &str, published: &str| {
            format!(
                "{{\"bench\":\"paper\",\"paper\":\"dr-top-k\",\"figure\":\"Fig. 17\",\
                 \"quantity\":\"ms\",\"case\":\"{case}\",\"backend\":\"cuda\",{published}\
                 \"ours\":2.0}}\n"
            )
        };
        let text = line("radix", "\"published\":8.0,") + &line("delegates", "");
        let benches: Benches =
            [("paper".to_string(), records::parse(&text).expect("lines"))].into();
        let chapter = chapter([("X".to_string(), &benches, "p.jsonl".to_string())].into_iter());
        let chapter = chapter.expect("records");
        assert!(chapter.contains("## Dr. Top-k, X\n\nRecords: `p.jsonl`.\n\n### Fig. 17: ms\n"));
        assert!(chapter.contains("| radix | cuda | 8.00 | 2.00 | 0.250 |\n"));
        assert!(chapter.contains("| delegates | cuda |  | 2.00 |  |\n"));
        assert!(
            super::chapter([("X".to_string(), &Benches::new(), String::new())].into_iter())
                .is_none()
        );
    }
}
