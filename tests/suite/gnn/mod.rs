//! Graph layers and training.

pub mod attention;
pub mod captures;
pub mod devices;
pub mod fixture;
pub mod hetero;
pub mod layers;
pub mod links;
pub mod messages;
pub mod pooling;
pub mod pyg;
pub mod subject;
pub mod training;

use sparsek_tests::{backend::Backend, runner::Cases};

pub fn add(cases: &mut Cases, backend: &Backend) {
    training::add(cases, backend);
    devices::add(cases, backend);
    captures::add(cases, backend);
    layers::add(cases, backend);
    messages::add(cases, backend);
    attention::add(cases, backend);
    pyg::add(cases, backend);
    hetero::add(cases, backend);
    pooling::add(cases, backend);
    links::add(cases, backend);
}
