//! The placement rules of launchers, one file each.

mod getinfo;
mod hydra;
mod launcher;
mod openmpi;
mod openmpi5;
mod slurm;

pub use launcher::Launcher;

/// All launchers; the first is the default. A further one is a file with its `impl Launcher` and a line here.
pub static LAUNCHERS: [&dyn Launcher; 5] =
    [&openmpi::OpenMpi, &openmpi5::OpenMpi5, &getinfo::GetInfo, &hydra::Hydra, &slurm::Slurm];

/// The launcher of this name; its rules answer a [`Request`](crate::Request).
pub fn launcher(name: &str) -> Option<&'static dyn Launcher> {
    LAUNCHERS.into_iter().find(|launcher| launcher.name() == name)
}
