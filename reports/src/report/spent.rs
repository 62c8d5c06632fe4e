//! The part of a report's data on the captured run itself: how the ranks spent it (`docs/time.md`).

use crate::stats::{Accounts, InAll};
use results::Exact;
use results::report::{FunctionRanks, InFunction, OfRank, Part, Spent};
use vef_format::account::{ByPart, TimePart};
use vef_format::units::Picos;

/// Rows of the figures, at most: of more ranks, several share one.
const MOST_ROWS: usize = 1024;
/// Functions by rank, at most: those with most time.
const MOST_FUNCTIONS: usize = 16;

/// The data of `accounts`, of which times are in ticks of `clock`.
pub(crate) fn spent(accounts: &Accounts, clock: Picos) -> Spent {
    let picos = |ticks: u64| Exact(u128::from(ticks) * u128::from(clock.0));
    let (all, tasks) = (accounts.all(), accounts.tasks.len());
    let running = all.running();
    // A storage server of vef mix is a task without an account.
    let recorded = accounts.tasks.iter().filter(|task| **task != ByPart::default()).count() as u64;
    let share = |ticks: u64| if running == 0 { 0.0 } else { ticks as f64 / running as f64 };
    let part = |&part: &TimePart| {
        let times = || accounts.tasks.iter().map(|task| task.of(part));
        let most = times().max().unwrap_or(0);
        let rank = times().position(|time| time == most).unwrap_or(0) as u32;
        Part {
            part: part.name().to_owned(),
            time_ps: picos(all.of(part)),
            share: (part != TimePart::StartUp).then(|| share(all.of(part))),
            mean_ps: picos(all.of(part) / recorded.max(1)),
            max: OfRank { rank, value: picos(most) },
        }
    };
    let used = || TimePart::ALL.iter().filter(|&&part| all.of(part) > 0);
    let function = |&(name, part, ref sum): &(&str, TimePart, InAll)| InFunction {
        function: name.to_owned(),
        part: part.name().to_owned(),
        calls: sum.calls.into(),
        time_ps: picos(sum.ticks),
        share: (part != TimePart::StartUp).then(|| share(sum.ticks)),
        max: OfRank { rank: sum.most.0.0, value: picos(sum.most.1) },
    };
    let per_row = tasks.div_ceil(MOST_ROWS).max(1);
    let rows = accounts.tasks.chunks(per_row).map(|tasks| {
        let mut row = ByPart::default();
        tasks.iter().for_each(|task| row.merge(task));
        row
    });
    let rows: Vec<ByPart> = rows.collect();
    let list =
        |&part: &TimePart| (part.name().to_owned(), rows.iter().map(|row| picos(row.of(part))).collect());
    let functions = accounts.by_function();
    Spent {
        run_ps: picos(running),
        parts: used().map(part).collect(),
        functions: functions.iter().filter(|(.., sum)| sum.ticks > 0).map(function).collect(),
        ranks_per_row: per_row as u32,
        ranks: used().map(list).collect(),
        function_ranks: function_ranks(accounts, per_row, rows.len(), picos),
    }
}

/// The functions with most time behind `MPI_Init`, by rank.
fn function_ranks(
    accounts: &Accounts,
    per_row: usize,
    rows: usize,
    picos: impl Fn(u64) -> Exact,
) -> Vec<FunctionRanks> {
    let entries = || accounts.entries.iter().filter(|entry| entry.part.is_inside());
    let mut sums = vec![0u64; accounts.functions.len()];
    entries().for_each(|entry| {
        let sum = &mut sums[entry.function as usize];
        *sum = sum.saturating_add(entry.ticks);
    });
    let mut order: Vec<usize> = (0..sums.len()).filter(|&function| sums[function] > 0).collect();
    order.sort_by_key(|&function| std::cmp::Reverse(sums[function]));
    order.truncate(MOST_FUNCTIONS);
    let mut times = vec![vec![0u64; rows]; order.len()];
    for entry in entries() {
        if let Some(at) = order.iter().position(|&function| function == entry.function as usize) {
            let sum = &mut times[at][entry.task.index() / per_row];
            *sum = sum.saturating_add(entry.ticks);
        }
    }
    let row = |(&function, times): (&usize, &Vec<u64>)| FunctionRanks {
        function: accounts.functions[function].clone(),
        time_ps: times.iter().map(|&ticks| picos(ticks)).collect(),
    };
    order.iter().zip(&times).map(row).collect()
}
