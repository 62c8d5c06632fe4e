//! `vef gen`: generates traces of known communication patterns.

use crate::output::{self, Failure};
use crate::progress::Busy;
use crate::simulation_args::Gen;
use sim_example::quantity::{parse_bytes, parse_time};
use std::io::{BufWriter, Write};
use vef_format::container::Settings;
use vef_format::new_file::NewFile;
use vef_format::units::{Grouped, Ticks};
use workloads::{Kernel, Workload};

pub fn execute(options: &Gen) -> Result<(), Failure> {
    let workload = workload(options)?;
    let contained = options.output.extension().is_some_and(|suffix| suffix.eq_ignore_ascii_case("vefx"));
    if options.compress && !contained {
        return Err("--compress is for containers: OUT.vefx".into());
    }
    let busy = Busy::new("writing");
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", options.output.display());
    // Report invalid parameters before a file is created.
    workload.header()?;
    let new = NewFile::create(&options.output).map_err(|error| failed(&error))?;
    let mut out = BufWriter::with_capacity(1 << 20, new.file());
    let header = match contained {
        true => {
            workload.write_container(&mut out, Settings { compress: options.compress, ..Settings::default() })
        }
        false => workload.write_text(&mut out),
    };
    let header = header.map_err(|error| failed(&error))?;
    out.flush().map_err(|error| failed(&error))?;
    drop(out);
    new.finish().map_err(|error| failed(&error))?;
    drop(busy);
    let text = format!(
        "{}: {} ranks, {} iterations of {}: {} point-to-point records, {} collectives",
        options.output.display(),
        Grouped(u64::from(header.tasks)),
        Grouped(u64::from(workload.iterations)),
        workload.kernel,
        Grouped(header.messages),
        Grouped(header.collectives)
    );
    output::about(&options.output, text)
}

fn workload(options: &Gen) -> Result<Workload, Failure> {
    let mut kernel = Kernel::named(&options.pattern, options.ranks.unwrap_or(1))?;
    let list = |text: &str, separator: char| -> Option<Vec<u32>> {
        text.split(separator).map(|part| part.trim().parse().ok().filter(|&n| n > 0)).collect()
    };
    if let Some(text) = &options.grid {
        let sizes = list(text, 'x').unwrap_or_default();
        kernel = match (kernel, &sizes[..]) {
            (Kernel::Halo2d { .. }, &[x, y]) => Kernel::Halo2d { grid: [x, y] },
            (Kernel::Sweep { .. }, &[x, y]) => Kernel::Sweep { grid: [x, y] },
            (Kernel::Fft { .. }, &[x, y]) => Kernel::Fft { grid: [x, y] },
            (Kernel::Halo3d { .. }, &[x, y, z]) => Kernel::Halo3d { grid: [x, y, z] },
            (kernel, _) if kernel.grid().is_none() => {
                return Err(format!("--grid: {} has no grid", kernel.name()).into());
            }
            (kernel, _) => {
                let form = if let Kernel::Halo3d { .. } = kernel { "AxBxC" } else { "AxB" };
                return Err(format!("--grid {text:?}: write {form} for {}", kernel.name()).into());
            }
        };
    }
    if let Kernel::Training { data, tensor, pipeline, micro_batches, gradient } = &mut kernel {
        if let Some(text) = &options.parallel {
            match list(text, ',').as_deref() {
                Some(&[d, t, p]) => (*data, *tensor, *pipeline) = (d, t, p),
                _ => {
                    return Err(format!(
                        "--parallel {text:?}: write replicas, ranks of a tensor group, stages: 4,8,2"
                    )
                    .into());
                }
            }
        }
        (*micro_batches, *gradient) = (options.micro_batches, parse_bytes(&options.gradient)?);
    } else if options.parallel.is_some() {
        return Err(format!("--parallel is for training, not for {}", kernel.name()).into());
    }
    let compute = parse_time(&options.compute)?;
    if compute.0 % 1000 != 0 {
        return Err(format!("--compute {:?}: a trace counts in whole nanoseconds", options.compute).into());
    }
    Ok(Workload {
        kernel,
        bytes: parse_bytes(&options.bytes)?,
        iterations: options.iterations,
        compute: Ticks(compute.0 / 1000),
        imbalance: options.imbalance,
        noise: options.noise,
        seed: options.seed,
    })
}
