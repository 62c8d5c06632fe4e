//! Several traces in one simulation: which options are for which of them.

use crate::output::Failure;
use crate::simulation_args::Sim;
use sim_example::model::{Members, TrafficClasses};
use sim_example::quantity::parse_time;
use sim_example::{Repeat, Workload};
use std::path::Path;
use vef_format::nearest::did_you_mean;

/// The name of a job: that of its file, without directory and suffix.
fn name(trace: &Path) -> String {
    let stem = trace.file_stem().unwrap_or(trace.as_os_str());
    stem.to_string_lossy().into_owned()
}

/// The traces as the user named them, by which options name jobs.
pub struct Jobs<'a>(Vec<&'a Path>);

impl<'a> Jobs<'a> {
    pub fn of(sim: &'a Sim) -> Self {
        Self(std::iter::once(&sim.trace).chain(&sim.others).map(|trace| trace.as_path()).collect())
    }

    /// The job of a number, or of the only trace of a name.
    fn find(&self, text: &str) -> Result<usize, String> {
        let is_named = |trace: &Path| name(trace) == text || trace == Path::new(text);
        let found: Vec<usize> = (0..self.0.len()).filter(|&job| is_named(self.0[job])).collect();
        let number = || text.parse().ok().filter(|&job: &usize| job < self.0.len());
        match (found[..].len(), number()) {
            (1, _) => Ok(found[0]),
            (0, Some(job)) => Ok(job),
            (0, None) => {
                let names: Vec<String> = self.0.iter().map(|trace| name(trace)).collect();
                let last = self.0.len() - 1;
                let meant = did_you_mean(text, names.iter().map(String::as_str));
                Err(format!(
                    "no job {text:?}; {meant}write {}, or a number from 0 to {last}",
                    names.join(", ")
                ))
            }
            (several, _) => {
                Err(format!("{several} traces are called {text:?}; write the number of the job, from 0"))
            }
        }
    }

    /// The job and the value of `JOB=VALUE`, an argument of `option`.
    fn of_job<'t>(&self, option: &str, text: &'t str) -> Result<(usize, &'t str), Failure> {
        let wrong = |error: String| format!("{option} {text}: {error}");
        let (job, value) = text.split_once('=').ok_or_else(|| wrong("write JOB=VALUE".to_owned()))?;
        Ok((self.find(job).map_err(wrong)?, value))
    }

    /// Sets the starts of jobs and how often they run.
    pub fn schedule(&self, sim: &Sim, jobs: &mut [Workload]) -> Result<(), Failure> {
        let mut started = vec![false; jobs.len()];
        for text in &sim.start {
            let (job, at) = self.of_job("--start", text)?;
            let wrong = |error: &dyn std::fmt::Display| format!("--start {text}: {error}");
            if std::mem::replace(&mut started[job], true) {
                return Err(wrong(&"the job has another --start").into());
            }
            let time = match at.strip_prefix("after:") {
                None => at,
                Some(other) => {
                    // A name may have a plus.
                    let (other, delay) = match other.rsplit_once('+') {
                        Some((other, delay)) if parse_time(delay).is_ok() => (other, delay),
                        _ => (other, "0ps"),
                    };
                    jobs[job].after = Some(self.find(other).map_err(|error| wrong(&error))? as u32);
                    delay
                }
            };
            jobs[job].start = parse_time(time).map_err(|error| wrong(&error))?;
        }
        let mut repeated = vec![false; jobs.len()];
        for text in &sim.repeat {
            let (job, value) = self.of_job("--repeat", text)?;
            if std::mem::replace(&mut repeated[job], true) {
                return Err(format!("--repeat {text}: the job has another --repeat").into());
            }
            let times = || value.parse().ok().filter(|&times| times > 0).map(Repeat::Times);
            jobs[job].repeat = match value.strip_prefix("until:") {
                Some(other) => {
                    let other = self.find(other).map_err(|error| format!("--repeat {text}: {error}"))?;
                    Repeat::Until(other as u32)
                }
                None => times().ok_or_else(|| {
                    format!(
                        "--repeat {text}: write JOB=TIMES, with a number from 1 to {}, or JOB=until:JOB",
                        u32::MAX
                    )
                })?,
            };
        }
        Ok(())
    }

    /// The executables of arriving jobs that have traces, and the numbers of these.
    pub fn programs(&self, sim: &Sim) -> Result<Vec<(u64, usize)>, Failure> {
        let mut programs: Vec<(u64, usize)> = Vec::new();
        for text in &sim.program {
            let wrong = |error: String| format!("--program {text}: {error}");
            let (executable, job) =
                text.split_once('=').ok_or_else(|| wrong("write EXECUTABLE=JOB".to_owned()))?;
            let number =
                executable.parse().map_err(|_| wrong(format!("{executable:?}: not a number from 0")))?;
            if programs.iter().any(|(other, _)| *other == number) {
                return Err(wrong("the executable has another --program".to_owned()).into());
            }
            programs.push((number, self.find(job).map_err(wrong)?));
        }
        Ok(programs)
    }

    /// The placement of each job: that of all, or one of its own.
    pub fn placements(&self, sim: &Sim) -> Result<Vec<String>, Failure> {
        let mut placements = vec![sim.placement.clone(); self.0.len()];
        let mut placed = vec![false; placements.len()];
        for text in &sim.place {
            let (job, value) = self.of_job("--place", text)?;
            if std::mem::replace(&mut placed[job], true) {
                return Err(format!("--place {text}: the job has another --place").into());
            }
            placements[job] = value.to_owned();
        }
        Ok(placements)
    }

    /// The classes of traffic.
    pub fn classes(&self, sim: &Sim) -> Result<TrafficClasses, Failure> {
        let mut classes = TrafficClasses::default();
        for text in sim.class.iter().filter(|text| *text != "none") {
            let wrong = |error: String| format!("--class {text}: {error}");
            let forms = "write JOB=WEIGHT, background=WEIGHT or collectives=WEIGHT, with a number from 1 to";
            let forms = || format!("{forms} {}", TrafficClasses::MOST_WEIGHT);
            // A name may have an equals sign.
            let (members, weight) = text.rsplit_once('=').ok_or_else(|| wrong(forms()))?;
            let weight = weight.parse().map_err(|_| wrong(forms()))?;
            let members = match (members, self.find(members)) {
                (_, Ok(job)) => Members::Job(job as u32),
                ("background", Err(_)) if sim.background.is_none() => {
                    return Err(wrong("there is no --background".to_owned()).into());
                }
                ("background", Err(_)) => Members::Background,
                ("collectives", Err(_)) => Members::Collectives,
                (_, Err(error)) => return Err(wrong(format!("{error}, background or collectives")).into()),
            };
            classes.add(members, weight).map_err(|error| wrong(error.to_string()))?;
        }
        Ok(classes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_have_names_and_numbers() {
        let jobs = Jobs(["runs/a.vefx", "b.vef", "other/b.vef", "7.vef"].map(Path::new).to_vec());
        assert_eq!(jobs.find("a"), Ok(0));
        assert_eq!(jobs.find("runs/a.vefx"), Ok(0));
        assert_eq!(jobs.find("2"), Ok(2));
        assert_eq!(jobs.find("7"), Ok(3), "a name comes before a number");
        assert!(jobs.find("b").unwrap_err().contains("2 traces are called"));
        assert_eq!(jobs.find("b.vef"), Ok(1));
        assert!(jobs.find("4").unwrap_err().contains("write a, b, b, 7, or a number from 0 to 3"));
        assert_eq!(jobs.of_job("--start", "a=5ns").unwrap(), (0, "5ns"));
        assert!(jobs.of_job("--start", "5ns").is_err());
    }
}
