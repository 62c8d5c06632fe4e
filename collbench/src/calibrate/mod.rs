//! From measured messages to the parameters of a simulator.
//!
//! Everything is measured between two ranks while the others wait, each time from a pause, so that buckets are full and
//! queues empty. Trains of n messages of s bytes, answered by one small reply, tell latency, burst and rate; spaced trains the
//! overheads; sends without a receive the eager limit.

mod fit;
mod measure;

pub use measure::{MessagePlan, Train};

use mpi_abi::api::Mpi;
use sim_example::calibration::{Calibration, Class, SCHEMA};

use crate::error::{Error, Result};
use crate::machine::Machine;
use crate::timer::Timer;
use crate::world::World;

/// Measures in all ranks; the calibration is complete at rank 0.
///
/// # Errors
/// MPI's, a timer that must not be used, fewer than two ranks, measurements that no parameters fit.
pub fn run(mpi: &Mpi, plan: &MessagePlan, progress: &mut dyn FnMut(&str)) -> Result<Option<Calibration>> {
    let world = World::new(mpi, mpi.abi().comm_world())?;
    let machine = Machine::look(&world)?;
    let timer = Timer::new(plan.timer, Some(mpi))?.yielding(machine.oversubscribed);
    timer.check()?;
    if world.size < 2 {
        return Err(Error::Invalid("calibration: messages need two ranks".into()));
    }
    // The first rank on another host than rank 0, and the first on the same.
    let find =
        |same: bool| (1..machine.hosts.len()).find(|&rank| (machine.hosts[rank] == machine.hosts[0]) == same);
    let own = [find(false), find(true)].map(|rank| rank.map_or(-1.0, |rank| rank as f64));
    let [inter, intra] = world.share(own)?;
    let mut class = |peer: f64, name: &str| -> Result<Option<Class>> {
        if peer < 0.0 {
            return Ok(None);
        }
        if world.is_root() {
            progress(&format!("{name}: ranks 0 and {peer}"));
        }
        let measured = measure::pair(&world, &timer, plan, peer as u32)?;
        world.is_root().then(|| fit::class(&measured)).transpose()
    };
    let inter = class(inter, "between nodes")?;
    let intra = class(intra, "within a node")?;
    let reduction_ns_per_byte = measure::reduction(mpi, &timer)?;
    if !world.is_root() {
        return Ok(None);
    }
    Ok(Some(Calibration {
        schema: SCHEMA.into(),
        mpi: machine.mpi,
        machine: format!("{}, {}, {} ranks", machine.processor, machine.system, world.size),
        reduction_ns_per_byte,
        inter,
        intra,
    }))
}
