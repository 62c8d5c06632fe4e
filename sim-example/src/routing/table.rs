//! Routes by tables from a file, on any topology; `topology/table.rs` has the format.

use std::path::{Path, PathBuf};

use super::form::Form;
use super::interface::Routing;

pub(super) const FORM: Form = Form {
    form: "table:FILE",
    help: "routes and entries of forwarding tables from a file (lines route FROM TO SWITCHES, next SWITCH NODE SWITCH); all else is shortest",
    parse: |text| {
        let path = text.strip_prefix("table:").filter(|path| !path.is_empty())?;
        Form::parsed(Tables { path: path.into() })
    },
};

/// The tables of a file.
#[derive(Debug)]
pub(super) struct Tables {
    path: PathBuf,
}

impl Routing for Tables {
    fn name(&self) -> String {
        format!("table:{}", self.path.display())
    }

    fn tables(&self) -> Option<&Path> {
        Some(&self.path)
    }
}
