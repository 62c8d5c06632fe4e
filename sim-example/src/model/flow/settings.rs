//! Settings of the flow model.

/// The heading of its options.
pub const HEADING: &str = "Model flow";

/// The share of a link that each message gets in the flow model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Weights {
    /// Equal shares
    #[default]
    Equal,
    /// In inverse proportion to the latency of the route, as SimGrid
    Latency,
}
