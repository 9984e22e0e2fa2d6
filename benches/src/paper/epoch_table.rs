//! RTop-K, Table 4 and Fig. 5: the share of top-k in a training epoch, and the speed-ups.

use crate::record::EpochRecord;

/// Prints a line for each record, compared with ReLU and the exact selection on the same graph.
pub fn print(records: &[EpochRecord]) {
    say!(
        "| graph | method | ms | top-k, ms | top-k, share | ReLU / this | exact / this | peak, MB |"
    );
    say!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    for row in rows(records) {
        say!("| {} |", row.join(" | "));
    }
}

/// What two records must share to be compared.
fn kind(record: &EpochRecord) -> ([&str; 4], Option<&str>) {
    let EpochRecord { graph, backend, device, dtype, model, .. } = record;
    ([graph, backend, device, dtype], model.as_deref())
}

fn rows(records: &[EpochRecord]) -> Vec<[String; 8]> {
    let cell = |number: Option<f64>, digits: usize| {
        number.map_or("–".into(), |number| format!("{number:.digits$}"))
    };
    let row = |record: &EpochRecord| {
        let same = |other: &&EpochRecord| kind(other) == kind(record);
        // The last record of a case counts.
        let over = |wanted: &dyn Fn(&EpochRecord) -> bool| {
            let mut others = records.iter().rev().filter(same);
            Some(others.find(|other| wanted(other))?.ms / record.ms)
        };
        let exact = |other: &EpochRecord| {
            other.case == record.case && other.topk.as_deref() == Some("exact")
        };
        let maxk = record.topk.as_ref().map(|topk| {
            let k = record.case.rsplit(' ').next().unwrap_or_default();
            format!("MaxK {k} {topk}")
        });
        let model = record.model.iter().map(String::as_str);
        let mixed = (record.dtype == "bf16").then_some("mixed");
        let named = [record.graph.as_str()].into_iter().chain(model).chain(mixed);
        let named = named.collect::<Vec<_>>().join(" ");
        [
            named,
            maxk.unwrap_or("ReLU".into()),
            format!("{:.2}", record.ms),
            cell(record.topk_ms, 3),
            record.topk_share.map_or("–".into(), |share| format!("{:.1}%", 100.0 * share)),
            cell(over(&|other| other.topk.is_none()), 2),
            cell(over(&exact).filter(|_| record.topk.is_some()), 2),
            cell(record.peak_mb, 0),
        ]
    };
    records.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(topk: Option<&str>, ms: f64) -> EpochRecord {
        let case = topk.map_or("g".into(), |_| String::from("g k=32"));
        let share = topk.map(|_| 0.125);
        let line = serde_json::json!({
            "bench": "spmm", "case": case, "backend": "cuda", "device": "d", "dtype": "f32",
            "method": "epoch", "dist": "synthetic", "graph": "g", "nodes": 1, "edges": 2,
            "features": 3, "classes": 4, "topk": topk, "ms": ms, "first_ms": 9.0, "upload_ms": 8.0,
            "topk_ms": share.map(|share| share * ms), "topk_share": share, "copy_gbps": 1.0,
            "checked": 4
        });
        serde_json::from_value(line).unwrap()
    }

    #[test]
    fn epochs_are_compared_with_relu_and_the_exact_selection() {
        let records = [record(None, 6.0), record(Some("exact"), 4.0), record(Some("early:2"), 2.0)];
        let cells = rows(&records);
        assert_eq!(cells[0], ["g", "ReLU", "6.00", "–", "–", "1.00", "–", "–"]);
        assert_eq!(
            cells[1],
            ["g", "MaxK k=32 exact", "4.00", "0.500", "12.5%", "1.50", "1.00", "–"]
        );
        assert_eq!(cells[2][5..7], ["3.00", "2.00"]);
        assert_eq!(rows(&records[2..])[0][5..7], ["–", "–"]);
    }
}
