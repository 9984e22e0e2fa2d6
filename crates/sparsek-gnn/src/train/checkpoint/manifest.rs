//! JSON with the SHA-256 of what follows the first line:
//!
//! ```text
//! {"format":"sparsek checkpoint","version":1,"sha256":"…",
//! "run":{"id":"…","model":{…},"train":{…},"dataset":{…},"history":[…],"files":{…}}}
//! ```
//!
//! Floats are text: JSON readers may round.

use std::{
    collections::hash_map::RandomState,
    fmt,
    hash::{BuildHasher, Hasher},
};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::DeserializeOwned, de::Error};

use crate::{
    nn::NodeModelConfig,
    train::{
        config::TrainConfig,
        fingerprint::{Fingerprint, Preparation, sha256},
        recipe::RecipeRecord,
        types::EpochReport,
    },
};

const FORMAT: &str = "sparsek checkpoint";
const VERSION: u64 = 1;

/// Run id: 16 random hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct RunId(String);

impl RunId {
    pub(in crate::train) fn random() -> Self {
        let number = RandomState::new().build_hasher().finish();
        Self(format!("{number:016x}"))
    }

    /// Digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for RunId {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        match text.len() == 16 && text.bytes().all(digit) {
            true => Ok(Self(text)),
            false => Err(D::Error::custom("a run's id has 16 hexadecimal digits")),
        }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Manifest<C> {
    pub(super) id: RunId,
    pub(super) model: C,
    pub(super) train: TrainConfig,
    #[serde(default, skip_serializing_if = "RecipeRecord::is_default")]
    pub(super) recipe: RecipeRecord,
    pub(super) dataset: Dataset,
    history: Vec<Row>,
    /// None until saved.
    pub(super) files: Option<Files>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Dataset {
    pub(super) name: String,
    pub(super) fingerprint: Fingerprint,
    pub(super) preparation: Preparation,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Files {
    pub(super) last: Saved,
    pub(super) optimizer: Saved,
    pub(super) best: Saved,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Saved {
    pub(super) name: String,
    pub(super) bytes: u64,
    pub(super) sha256: String,
}

impl Saved {
    pub(super) fn new(name: String, bytes: &[u8]) -> Self {
        Self { name, bytes: bytes.len() as u64, sha256: sha256(bytes) }
    }
}

impl<C: NodeModelConfig> Manifest<C> {
    pub(super) fn new(
        id: RunId,
        model: C,
        (train, recipe): (TrainConfig, RecipeRecord),
        dataset: Dataset,
    ) -> Self {
        Self { id, model, train, recipe, dataset, history: Vec::new(), files: None }
    }

    pub(super) fn after(&self, epochs: &[EpochReport], files: Files) -> Self {
        let mut next = self.clone();
        next.history.extend(epochs.iter().map(Row::from));
        next.files = Some(files);
        next
    }

    pub(super) fn epochs(&self) -> usize {
        self.history.len()
    }

    pub(super) fn history(&self) -> Vec<EpochReport> {
        self.history.iter().map(EpochReport::from).collect()
    }

    pub(super) fn text(&self) -> Result<String, String> {
        let run = serde_json::to_string(self).map_err(|error| error.to_string())?;
        let head = head(&sha256(run.as_bytes()));
        Ok(format!("{head}{run}}}\n"))
    }

    /// Does not check the named files.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Head {
            format: String,
            version: u64,
            sha256: String,
        }
        let head_of: Head =
            parsed(bytes).map_err(|error| format!("not a checkpoint's manifest: {error}"))?;
        if head_of.format != FORMAT {
            return Err("not a checkpoint's manifest".to_string());
        }
        if head_of.version != VERSION {
            return Err(format!(
                "a checkpoint of version {}, this program reads version {VERSION}",
                head_of.version
            ));
        }
        let damaged = "changed or damaged after it was saved: its checksum does not match";
        let run = bytes
            .strip_prefix(head(&head_of.sha256).as_bytes())
            .and_then(|rest| rest.strip_suffix(b"}\n"))
            .filter(|run| sha256(run) == head_of.sha256)
            .ok_or(damaged)?;
        let manifest: Self = parsed(run)?;
        manifest.check()?;
        Ok(manifest)
    }

    fn check(&self) -> Result<(), String> {
        // Check before building.
        self.model.validate().map_err(|error| error.to_string())?;
        self.train.validate().map_err(|error| error.to_string())?;
        let counted = |(at, row): (usize, &Row)| row.epoch == at + 1;
        if !self.history.iter().enumerate().all(counted) {
            return Err("its epochs are not counted from 1".to_string());
        }
        match (&self.files, best_of(&self.history())) {
            (None, None) => Ok(()),
            (Some(files), Some(best)) => {
                let last = self.epochs();
                for (file, kind, epoch) in [
                    (&files.last, "last", last),
                    (&files.optimizer, "optimizer", last),
                    (&files.best, "best", best.epoch),
                ] {
                    let wanted = name(kind, epoch);
                    if file.name != wanted {
                        return Err(format!("names a file {:?} as {wanted}", file.name));
                    }
                }
                Ok(())
            }
            _ => Err("names files without epochs, or epochs without files".to_string()),
        }
    }
}

/// The first on ties.
pub(in crate::train) fn best_of(history: &[EpochReport]) -> Option<EpochReport> {
    history.iter().copied().fold(None, |best, report| {
        match best.is_none_or(|best: EpochReport| report.val > best.val) {
            true => Some(report),
            false => best,
        }
    })
}

pub(super) fn name(kind: &str, epoch: usize) -> String {
    format!("{kind}-{epoch}.bpk")
}

fn head(checksum: &str) -> String {
    format!("{{\"format\":\"{FORMAT}\",\"version\":{VERSION},\"sha256\":\"{checksum}\",\n\"run\":")
}

fn parsed<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    serde_json::from_slice(bytes).map_err(|error| error.to_string())
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    epoch: usize,
    #[serde(with = "exact")]
    loss: f64,
    #[serde(with = "exact")]
    train: f64,
    #[serde(with = "exact")]
    val: f64,
    #[serde(with = "exact")]
    test: f64,
    #[serde(with = "exact")]
    ms: f64,
}

impl From<&EpochReport> for Row {
    fn from(report: &EpochReport) -> Self {
        let EpochReport { epoch, loss, train, val, test, ms } = *report;
        Self { epoch, loss, train, val, test, ms }
    }
}

impl From<&Row> for EpochReport {
    fn from(row: &Row) -> Self {
        let Row { epoch, loss, train, val, test, ms } = *row;
        Self { epoch, loss, train, val, test, ms }
    }
}

/// Round-trip text, NaN included.
mod exact {
    use super::*;

    pub(super) fn serialize<S: Serializer>(value: &f64, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&format!("{value:?}"))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
        let text = String::deserialize(from)?;
        let number = text.parse();
        number.map_err(|_| D::Error::custom("a number was expected"))
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(0, 0.1)]
    #[case(1, 1.0 / 3.0)]
    #[case::small(2, 6.931471805599453e-308)]
    #[case::infinite(3, f64::INFINITY)]
    fn numbers_come_back_to_the_last_bit(#[case] epoch: usize, #[case] loss: f64) {
        let report =
            EpochReport { epoch, loss, train: -0.0, val: loss.sqrt(), test: f64::NAN, ms: 1e300 };
        let text = serde_json::to_string(&Row::from(&report)).unwrap();
        let row: Row = serde_json::from_str(&text).unwrap();
        let back = EpochReport::from(&row);
        let bits = |r: &EpochReport| [r.loss, r.train, r.val, r.ms].map(f64::to_bits);
        assert_eq!(bits(&back), bits(&report), "{text}");
        assert!(back.test.is_nan(), "{text}");
    }

    #[test]
    fn ids_are_read_as_they_are_written() {
        let (first, second) = (RunId::random(), RunId::random());
        assert_ne!(first, second);
        let text = serde_json::to_string(&first).unwrap();
        assert_eq!(serde_json::from_str::<RunId>(&text).unwrap(), first);
    }

    #[rstest]
    #[case::empty("\"\"")]
    #[case::letter("\"0123456789abcdeg\"")]
    #[case::escape_sequence("\"0123\\u001b[2J89ab\"")]
    #[case::number("1")]
    fn ids_are_sixteen_digits(#[case] text: &str) {
        assert!(serde_json::from_str::<RunId>(text).is_err());
    }
}
