//! What the targets of the mixer, of other formats and of networks need.

use crate::with_directory;
use mixer::Table;
use sim_example::routing::{Load, Router, RoutingSpec};
use sim_example::topology::{LinkId, TopologySpec};
use std::path::Path;
use vef_format::units::Bytes;
use vef_format::validate::{Kind, Options, validate};

/// Links without load.
struct Unloaded;

impl Load for Unloaded {
    fn load(&self, _: LinkId) -> u64 {
        0
    }

    fn of_bytes(&self, bytes: Bytes) -> u64 {
        bytes.0
    }
}

/// Reads a file of that suffix which describes a network; routes between some of its nodes end there.
pub fn network(bytes: &[u8], suffix: &str) {
    with_directory(|directory| {
        let path = directory.join("network").with_extension(suffix);
        std::fs::write(&path, bytes).expect("a temporary file");
        let Ok(fabric) = TopologySpec::File(path).build(2) else { return };
        let nodes = fabric.nodes();
        let routing = RoutingSpec::default();
        let router = Router::new(&fabric, &*routing, 1).expect("shortest routes are for all topologies");
        for (src, dst) in (0..nodes.min(8)).flat_map(|node| [(node, nodes - 1 - node), (0, node)]) {
            let mut route = router.start(src, dst, router.key(src, dst, 0));
            let hops = (0..fabric.links()).take_while(|_| !router.next(&mut route, &Unloaded).last).count();
            assert_eq!(route.dst, dst);
            assert!(src == dst || hops < fabric.links() as usize, "a route without an end");
        }
    });
}

/// Imports files of a format of calls, which are refused or become a capture, whole and as a part, whose mix ends.
pub fn import(files: &[(&str, &[u8])]) {
    with_directory(|directory| {
        let run = directory.join("run");
        for (name, bytes) in files {
            let path = run.join(name);
            std::fs::create_dir_all(path.parent().unwrap_or(&run)).expect("a temporary directory");
            std::fs::write(path, bytes).expect("a temporary file");
        }
        for partial in [false, true] {
            let options =
                interchange::Options { partial, flops_per_second: Some(1e9), ..interchange::Options::default() };
            let Ok(files) = interchange::Files::of(std::slice::from_ref(&run)) else { return };
            let Ok(format) = interchange::Format::of(&files) else { return };
            let (trace, capture) = (directory.join("trace.vef"), directory.join(format!("capture-{partial}")));
            let made = interchange::import(format, &files, &trace, || Ok(capture.clone()), &options, &interchange::Quiet);
            if let Ok(interchange::Imported::Capture { .. }) = made {
                let mixing = mixer::Options { lenient: partial, jobs: 1, ..mixer::Options::default() };
                let _ = mixer::mix(&capture, &trace, &mixing, &mixer::Quiet);
            }
        }
        let _ = std::fs::remove_dir_all(&run);
    });
}

/// Mixes the capture in `directory`, `how` saying with which options. What comes out is a trace in which nothing is wrong
/// but what the program itself did: tasks that wait for each other, ends before `MPI_Finalize` (perhaps behind the wait for
/// a message), absurd times.
pub fn mix(directory: &Path, how: u8) {
    let strict = mixer::Options {
        skip_unknown: how & 1 != 0,
        jobs: 1,
        lower_collectives: (how & 2 != 0).then(Table::default),
        ..mixer::Options::default()
    };
    let mix = |options: &mixer::Options, name: &str| {
        let trace = directory.join(name);
        mixer::mix(directory, &trace, options, &mixer::Quiet).ok()?;
        let report = validate(&trace, &Options::default()).expect("a trace that can be read");
        for problem in &report.problems {
            // Roots are not compared between members: a trace has them as sizes, which validation holds against each other.
            let own_fault = problem.text.contains("two roots")
                || matches!(
                    problem.kind,
                    Kind::Cycle | Kind::TimeRange | Kind::EndsEarly | Kind::AwaitedByNobody
                );
            assert!(own_fault, "{problem}");
        }
        std::fs::read(trace).ok()
    };
    let lenient = mix(&mixer::Options { lenient: true, ..strict.clone() }, "lenient.vef");
    if let Some(strict) = mix(&strict, "strict.vef") {
        assert!(lenient.is_some_and(|lenient| lenient == strict), "nothing had to be dropped, and yet it differs");
    }
}
