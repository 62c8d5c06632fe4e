//! The smallest network imaginable: every message takes 2 µs, whatever happens beside it.
//!
//!     cargo run -p replay --example smallest -- TRACE.vef
#![allow(clippy::print_stdout)]

use replay::{Engine, Job, Next, Picos, Queue};
use std::{env, error::Error, path::Path};

fn main() -> Result<(), Box<dyn Error>> {
    let trace = env::args().nth(1).ok_or("which trace?")?;
    let mut engine = Engine::builder().job(Job::open(Path::new(&trace))?).engine()?;
    let mut network = Queue::new();
    // What follows from each call goes into the queue: messages at their arrival, calls at their moment.
    engine.begin(&mut |next| put(&mut network, next))?;
    while let Some((now, event)) = network.pop(Picos::MAX) {
        let mut follows = |next| put(&mut network, next);
        match event {
            Next::Message(message) | Next::Inside { message, .. } => {
                engine.delivered(message.id, now, &mut follows)?;
            }
            Next::Wake(wake) => engine.wake(wake, now, &mut follows)?,
        }
    }
    match engine.stuck() {
        None => println!("{} messages, done after {}", engine.stats().delivered, engine.finish()),
        Some(reason) => println!("{reason}"),
    }
    Ok(())
}

fn put(network: &mut Queue<Next>, next: Next) {
    match next {
        Next::Message(message) => network.push(Picos(message.start.0 + 2_000_000), next),
        Next::Inside { arrives, .. } => network.push(arrives, next),
        Next::Wake(wake) => network.push(wake.at, next),
    }
}
