//! What a model says of itself.

use super::error::ModelError;
use super::flow::settings::FlowSettings;
use super::links::Links;
use super::network::Network;
use super::packet::settings::PacketSettings;
use crate::routing::Router;

/// What a model says of itself: its name, the options that it uses, and how its network is built.
#[derive(Debug)]
pub struct ModelInfo {
    /// As in `--model`.
    pub name: &'static str,
    /// What messages share.
    pub help: &'static str,
    /// The headings of the options that it uses; it has no use for those of others.
    pub options: &'static [&'static str],
    /// Whether the same run in the model `latency` is its bound without contention.
    pub is_bounded_by_latency: bool,
    /// Whether a message becomes packets.
    pub has_packets: bool,
    /// Whether concurrent messages share the bandwidth of a link.
    pub shares_bandwidth: bool,
    /// What carries the messages.
    pub carrier: Carrier,
}

/// What carries the messages of a model.
#[derive(Debug)]
pub enum Carrier {
    /// The links of a topology.
    Links(Build),
    /// Processors and interfaces of ranks; there are no links ([`crate::loggp`]).
    Ranks,
}

/// Builds an empty network.
pub type Build = for<'a> fn(Setup<'a>) -> Result<Box<dyn Network + 'a>, ModelError>;

/// What a network is built from.
#[derive(Clone, Copy, Debug)]
pub struct Setup<'a> {
    /// The routes through the topology.
    pub router: Router<'a>,
    /// Speeds and delays.
    pub links: &'a Links,
    /// Settings of the flow model.
    pub flow: FlowSettings,
    /// Settings of the packet model.
    pub packet: PacketSettings,
    /// Whether [`Happened::Sent`](super::Happened::Sent) is to be reported.
    pub report_sent: bool,
}
