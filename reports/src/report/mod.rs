//! The data of a report, from sums over a trace and a replay; as text, as JSON, as a page, as pictures.

pub mod measures;
pub mod model;
pub mod replayed;
pub mod spent;

mod describe;
mod who;

mod shown;

mod columns;
mod markdown;
mod page;
mod parts;
mod text;

mod against;
mod simulation;

#[cfg(feature = "svg")]
mod pictures;

pub use model::Report;
#[cfg(feature = "svg")]
pub use pictures::{PictureError, network_picture, pictures};
pub use replayed::Replayed;
pub use simulation::{SimulationError, Simulations, read as read_simulation, read_any as read_simulations};
pub use text::{Section, Shown};

pub(crate) use who::matrix;

impl Report {
    /// The data as one line of JSON.
    pub fn to_json(&self) -> String {
        // Nothing in it can fail: its keys are strings and its numbers finite.
        serde_json::to_string(self).unwrap_or_default()
    }
}
