//! Settings of the flow model.

/// The heading of its options.
pub(super) const HEADING: &str = "Model flow";

/// Parameters of the flow model.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
#[group(skip)]
pub struct FlowSettings {
    /// Shares of concurrent messages on a link
    #[arg(long, value_enum, default_value_t, value_name = "HOW", help_heading = HEADING)]
    pub weights: Weights,
    /// What shares links with others
    #[arg(long, value_enum, default_value_t, value_name = "WHAT", help_heading = HEADING)]
    pub connections: Connections,
}

/// The share of a link that each message gets in the flow model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Weights {
    /// Equal shares
    #[default]
    Equal,
    /// In inverse proportion to the latency of the route, as SimGrid
    Latency,
}

/// What shares links with others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Connections {
    /// Each message by itself, as SimGrid
    #[default]
    Message,
    /// The messages of a pair of ranks, one after the other, as over a TCP connection
    Pair,
}
