//! Tables and figures of the papers, reproduced from runs and records. The benches themselves do
//! not depend on this module.

pub mod distance_figures;
pub mod distance_table;
pub mod epoch_table;
mod exponents;
pub mod reproduce;
pub mod row_chart;
pub mod rtopk;
pub mod vector_chart;
