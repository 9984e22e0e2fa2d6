use std::fmt::{Display, Formatter, Result};

use burn::{
    module::{
        Content, Devices, Module, ModuleDisplay, ModuleDisplayDefault, ModuleMapper, ModuleVisitor,
    },
    tensor::Device,
};

/// Untrained number: visitors get it as module name, records omit it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Constant(pub f64);

impl Constant {
    /// Container name for visitors.
    pub const CONTAINER: &'static str = "Constant";
}

impl Module for Constant {
    fn visit<Visitor: ModuleVisitor>(&self, visitor: &mut Visitor) {
        let name = self.0.to_string();
        visitor.enter_module(&name, Self::CONTAINER);
        visitor.exit_module(&name, Self::CONTAINER);
    }

    fn map<Mapper: ModuleMapper>(self, _: &mut Mapper) -> Self {
        self
    }

    fn collect_devices(&self, devices: Devices) -> Devices {
        devices
    }

    fn fork(self, _: &Device) -> Self {
        self
    }

    fn to_device(self, _: &Device) -> Self {
        self
    }

    fn train(self) -> Self {
        self
    }

    fn valid(&self) -> Self {
        *self
    }

    fn materialize(self) -> Self {
        self
    }
}

impl Display for Constant {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        self.0.fmt(f)
    }
}

impl ModuleDisplayDefault for Constant {
    fn content(&self, content: Content) -> Option<Content> {
        content.add_formatted(self).optional()
    }
}

impl ModuleDisplay for Constant {}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::{
        fixtures::{Alone, alone, device},
        nn::{GinConvConfig, GinMlpConfig},
    };

    #[derive(Default)]
    struct Names(Vec<(String, String)>);

    impl ModuleVisitor for Names {
        fn enter_module(&mut self, name: &str, container: &str) {
            self.0.push((name.to_string(), container.to_string()));
        }
    }

    #[rstest]
    fn visitors_see_the_number_and_records_do_not(_alone: Alone, device: Device) {
        let config = GinConvConfig::new().with_eps(0.1).with_mlp(Some(GinMlpConfig::new(2, 3, 4)));
        let layer = config.init(&device);
        let mut names = Names::default();
        layer.visit(&mut names);
        let expected = ("0.1".to_string(), "Constant".to_string());
        assert_eq!(names.0.last(), Some(&expected));
        assert_eq!(Module::num_params(&layer), 2 * 3 + 3 + 3 * 4 + 4);
        assert_eq!(layer.into_record().len(), 4);
    }
}
