//! The smallest network imaginable: every message takes 2 µs, whatever happens beside it.
//!
//!     cargo run -p replay --example smallest -- TRACE.vef
#![allow(clippy::print_stdout)]

use replay::{Job, Picos, Replay};
use std::{cmp::Reverse, collections::BinaryHeap, env, error::Error, path::Path};

fn main() -> Result<(), Box<dyn Error>> {
    let trace = env::args().nth(1).ok_or("which trace?")?;
    let mut replay = Replay::builder().job(Job::open(Path::new(&trace))?).build()?;
    let mut network = BinaryHeap::new();
    loop {
        // What comes next: a message that is ready, or one that arrives.
        let arrival = network.peek().map(|&Reverse((at, _))| at);
        let Some(now) = replay.next_ready().into_iter().chain(arrival).min() else { break };
        if arrival == Some(now) {
            let Some(Reverse((at, id))) = network.pop() else { break };
            replay.delivered(id, at)?;
        } else if let Some(message) = replay.pop_ready(now)? {
            network.push(Reverse((Picos(now.0 + 2_000_000), message.id)));
        }
    }
    match replay.stuck() {
        None => println!("{} messages, done after {}", replay.stats().delivered, replay.finish()),
        Some(reason) => println!("{reason}"),
    }
    Ok(())
}
