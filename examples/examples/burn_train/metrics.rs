//! A metric of your own.

use std::{collections::HashSet, sync::Arc};

use burn::{
    tensor::{Int, Tensor, TensorReadError},
    train::metric::{
        Metric, MetricMetadata, MetricName, Numeric, NumericEntry, SerializedEntry,
        state::{FormatOptions, NumericMetricState},
    },
};

/// Share of the hidden units that MaxK keeps for at least one node of a batch. The others are dead:
/// they get no gradient.
#[derive(Clone)]
pub struct UnitsInUse {
    units: usize,
    state: NumericMetricState,
}

impl UnitsInUse {
    pub fn of(units: usize) -> Self {
        Self { units, state: NumericMetricState::new() }
    }

    fn format(&self) -> FormatOptions {
        FormatOptions::new(self.name()).unit("%").precision(1)
    }
}

impl Metric for UnitsInUse {
    type Input = Tensor<2, Int>;

    fn name(&self) -> MetricName {
        Arc::new("Units in use".to_string())
    }

    fn update(
        &mut self,
        kept: &Tensor<2, Int>,
        _: &MetricMetadata,
    ) -> Result<SerializedEntry, TensorReadError> {
        let kept: HashSet<i64> = kept.clone().try_into_data()?.iter::<i64>().collect();
        self.state.update(100.0 * kept.len() as f64 / self.units as f64, 1);
        Ok(self.state.compute_update(self.format()))
    }

    fn compute(&mut self) -> Result<SerializedEntry, TensorReadError> {
        Ok(self.state.compute_final(self.format()))
    }

    fn clear(&mut self) {
        self.state.reset();
    }
}

/// Numeric metrics are plotted and summed up.
impl Numeric for UnitsInUse {
    fn value(&self) -> Option<NumericEntry> {
        Some(self.state.current_value())
    }

    fn running_value(&self) -> Option<NumericEntry> {
        Some(self.state.running_value())
    }

    fn final_value(&self) -> NumericEntry {
        self.state.final_value()
    }
}
