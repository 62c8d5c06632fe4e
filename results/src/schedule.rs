//! The result of `vef sim` for a GOAL schedule.

use crate::schema::schema;
use crate::simulation::{Finish, JobReport, NetworkReport, Performance, Simulation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vef_format::units::{Count, Grouped, Picos};

/// The result of a GOAL schedule under model `loggp`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Schedule {
    /// Version of these keys.
    pub schema: ScheduleSchema,
    /// When all processors of all ranks are free for good.
    pub runtime_ps: u64,
    /// Number of ranks.
    pub ranks: u32,
    /// Number of operations.
    pub operations: u64,
    /// Number of messages.
    pub messages: u64,
    /// Their payload.
    pub bytes: u64,
    /// Messages that no receive takes.
    #[serde(default)]
    pub unreceived: u64,
    /// The send of the first of them.
    #[serde(default)]
    pub first_unreceived: Option<String>,
    /// When the processors of each rank are free for good.
    pub finish: Finish,
    /// The schedule, by the keys that jobs of other simulations have.
    #[serde(default)]
    pub jobs: Vec<ScheduledJob>,
    /// The parameters, in the form in which they can be given again.
    pub loggp: String,
    /// Speed of the simulation itself.
    pub performance: Performance,
}

/// A schedule as a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScheduledJob {
    /// Its file, if there is one.
    pub trace: Option<String>,
    /// Number of ranks.
    pub tasks: u64,
    /// When all processors of all ranks are free for good.
    pub runtime_ps: u64,
}

schema!(ScheduleSchema of Schedule: "vef-schedule/1");

impl Schedule {
    /// The result as text.
    pub fn to_text(&self) -> String {
        let Self { runtime_ps, ranks, operations, messages, bytes, unreceived, finish, loggp, .. } = self;
        let (runtime, min, mean) = (Picos(*runtime_ps), Picos(finish.min_ps), Picos(finish.mean_ps));
        let lost = self.first_unreceived.as_ref().map_or(String::new(), |first| {
            format!("\nnot received {} of these messages; the first: {first}", Grouped(unreceived))
        });
        format!(
            "run time     {runtime}\nranks        {} (finished from {min} on, in the mean after {mean})\n\
             operations   {}, {} ({} B){lost}\nmodel        loggp, {loggp}",
            Grouped(ranks),
            Grouped(operations),
            Count(*messages, "message"),
            Grouped(bytes)
        )
    }
}

impl From<Schedule> for Simulation {
    /// A point of a sweep. There is no network but the model's parameters, and no state of a rank.
    fn from(schedule: Schedule) -> Self {
        let Schedule { runtime_ps, ranks, messages, bytes, finish, jobs, loggp, performance, .. } = schedule;
        let trace = jobs.into_iter().next().and_then(|job| job.trace);
        Self {
            complete: true,
            runtime_ps,
            tasks: ranks.into(),
            messages,
            bytes,
            jobs: vec![JobReport { trace, tasks: ranks, runtime_ps, finish, ..JobReport::default() }],
            network: NetworkReport {
                model: "loggp".to_owned(),
                loggp: Some(loggp),
                ..NetworkReport::default()
            },
            performance,
            ..Self::default()
        }
    }
}
