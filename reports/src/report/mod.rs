//! The data of a report, from sums over a trace and a replay; as text, as JSON, as a page, as pictures.

mod describe;
mod model;
mod spent;
mod who;

mod shown;

mod columns;
mod markdown;
mod page;
mod parts;
mod sections;
mod text;

mod against;
mod simulation;

#[cfg(feature = "svg")]
mod pictures;

pub use model::Report;
#[cfg(feature = "svg")]
pub use pictures::{PictureError, network_picture, pictures};
pub use sections::Section;
pub use simulation::{SimulationError, Simulations, read as read_simulation, read_any as read_simulations};

pub(crate) use sections::{file_ranks_table, files_table, functions_table, time_table};
pub(crate) use spent::spent;
pub(crate) use who::matrix;
