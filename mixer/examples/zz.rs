//! Measures.
#![allow(missing_docs, clippy::print_stdout)]
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let options = mixer::Options {
        jobs: args.get(3).map_or(1, |j| j.parse().unwrap()),
        memory: args.get(4).map(|m| vef_format::units::Bytes(m.parse().unwrap())),
        ..mixer::Options::default()
    };
    let s = mixer::mix(args[1].as_ref(), args[2].as_ref(), &options, &mixer::Quiet).unwrap();
    println!("{} records, {:?}, peak {}", s.records, s.times, s.peak_memory.0);
}
