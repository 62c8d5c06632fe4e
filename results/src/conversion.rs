//! The results of the commands that convert: `vef mix`, `vef import`, `vef export`. Their counts have types of the libraries that convert.

use crate::schema::schema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The result of `vef mix`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Mix")]
pub struct Mix<S> {
    /// Version of these keys; another number where a key goes or changes its meaning.
    pub schema: MixSchema,
    /// What was mixed, and what the trace lacks.
    #[serde(flatten)]
    pub summary: S,
}

schema!(MixSchema of Mix: "vef-mix/1");

/// The result of `vef import`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Import")]
pub struct Import<I, M> {
    /// Version of these keys; another number where a key goes or changes its meaning.
    pub schema: ImportSchema,
    /// The name of the format.
    pub format: String,
    /// What was read, and what the trace lacks of it.
    pub import: I,
    /// The mix, of formats of calls, which become a capture.
    pub mix: Option<M>,
}

schema!(ImportSchema of Import: "vef-import/1");

/// The result of `vef export`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Export")]
pub struct Export<E> {
    /// Version of these keys; another number where a key goes or changes its meaning.
    pub schema: ExportSchema,
    /// What was written.
    #[serde(flatten)]
    pub exported: E,
}

schema!(ExportSchema of Export: "vef-export/1");
