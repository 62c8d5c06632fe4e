use super::*;
use crate::model::Model;
use crate::settings::{Settings, Workload};
use std::io::Write;
use tempfile::NamedTempFile;

/// A trace in which each task sends messages to the next task, each after computing for some ticks; `(ticks, bytes)` by task.
fn trace(clock: u64, tasks: &[Vec<(u64, u64)>]) -> NamedTempFile {
    let count: usize = tasks.iter().map(Vec::len).sum();
    let mut file = NamedTempFile::new().unwrap();
    let mut text = format!("VEF3 {} {count} 0 0 0 0 {clock}\n", tasks.len());
    let mut id = 0;
    for (task, records) in tasks.iter().enumerate() {
        for (ticks, bytes) in records {
            text += &format!("{id} {task} {} {bytes} 0 {ticks} -1\n", (task + 1) % tasks.len());
            id += 1;
        }
    }
    file.write_all(text.as_bytes()).unwrap();
    file
}

/// Records of one place behind the first ones, which no eight records precede and which keep their times.
const FIRST: usize = 7;

/// First records, and records of the same place.
fn repeated(times: impl IntoIterator<Item = u64>) -> Vec<(u64, u64)> {
    [7000; FIRST].into_iter().chain(times).map(|ticks| (ticks, 100)).collect()
}

fn noise(file: &NamedTempFile, model: &str, seed: u64) -> Result<(Noise, NoiseReport), SimError> {
    let job = Job::open(file.path()).unwrap();
    let model: ComputeNoise = model.parse().unwrap();
    Ok(Noise::new(&model, &job, 0, seed, SendCompletion::Eager)?.unwrap())
}

/// The computing times of a trace under a model, by task.
fn replaced(file: &NamedTempFile, model: &str, seed: u64) -> Vec<Vec<u64>> {
    let (mut noise, _) = noise(file, model, seed).unwrap();
    let job = Job::open(file.path()).unwrap();
    let mut times = vec![Vec::new(); job.tasks() as usize];
    job.survey(SendCompletion::Eager, &mut |task, record| {
        let times = &mut times[task.index()];
        times.push(noise.time(task, times.len() as u64, record).0);
    })
    .unwrap();
    times
}

/// Random numbers from 0 to 1 of another generator than the crate's.
fn uniform(seed: u64) -> impl Iterator<Item = f64> {
    let mut state = seed;
    std::iter::repeat_with(move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    })
}

#[test]
fn removed_noise_by_hand() {
    let times = || (0..20).map(|n| if n % 4 == 1 { 200 } else { 100 });
    let file = trace(1000, &[repeated(times()), vec![]]);
    let sum = |model: &str| replaced(&file, model, 1)[0].iter().sum::<u64>();
    assert_eq!(sum("removed"), 49_000 + 20 * 100);
    assert_eq!(sum("removed:0"), 49_000 + 20 * 100);
    // 15 of 20 are short.
    assert_eq!(sum("removed:0.75"), 49_000 + 20 * 100);
    assert_eq!(sum("removed:0.76"), 49_000 + 20 * 200);
    assert_eq!(sum("removed:1"), 49_000 + 20 * 200);
    let (_, report) = noise(&file, "removed", 1).unwrap();
    assert_eq!((report.places, report.replaced, report.kept), (1, 20, 7));
    let expected = Deviations {
        from_ps: 100_000,
        records: 20,
        mean: 1.25,
        p10: 1.0,
        p50: 1.0,
        p90: 2.0,
        p99: 2.0,
        max: 2.0,
    };
    assert_eq!(report.deviations, [expected]);

    let mut settings = Settings { jobs: vec![Workload::new(file.path())], ..Settings::default() };
    settings.network.model = Model::Latency;
    settings.jobs[0].compute_noise = "removed".parse().unwrap();
    settings.jobs[0].compute_scale = "0=0.5".parse().unwrap();
    let report = crate::simulate(&settings, &mut |_| {}).unwrap();
    assert_eq!(report.jobs[0].finish.tasks_ps[0], 25_500_000);
    let text = report.to_text();
    assert!(
        text.contains("× 0=0.5\n")
            && text.contains(
                "noise removed:0.5: 20 computing times at 1 place (0 with several kinds of work), 7 kept"
            ),
        "{text}"
    );
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["jobs"][0]["computing"]["scale"], "0=0.5");
    assert_eq!(json["jobs"][0]["computing"]["noise"]["deviations"][0]["mean"], 1.25);
}

#[test]
fn longer_contexts_tell_places_apart() {
    // A loop with two parts of the same messages and other work; only its first message is larger.
    let iteration = [(100, 9000), (500, 10), (70, 10), (3000, 10), (70, 10)];
    let records: Vec<(u64, u64)> = iteration.into_iter().cycle().take(5 * 40).collect();
    let file = trace(1000, std::slice::from_ref(&records));
    let captured: Vec<u64> = records.iter().map(|(ticks, _)| *ticks).collect();
    assert_eq!(replaced(&file, "removed", 1)[0], captured);
    assert_eq!(replaced(&file, "resampled", 1)[0], captured);
    // Disturbed in every fifth iteration.
    let mut disturbed = records.clone();
    disturbed.iter_mut().skip(3).step_by(25).for_each(|(ticks, _)| *ticks += 4000);
    let file = trace(1000, &[disturbed]);
    assert_eq!(replaced(&file, "removed", 1)[0][25..], captured[25..]);
}

/// Steps of a program whose messages all have one shape: a long computation, then short ones between messages, one of
/// medium length among them.
const STEP: [u64; 6] = [100_000, 2000, 3000, 20_000, 2000, 3000];

#[test]
fn kinds_of_work_in_a_regular_order_are_told_apart() {
    const STEPS: usize = 200;
    // Up to a tenth longer each, and a time slice lost in one of some 25 repetitions.
    let hits = uniform(3).zip(uniform(4)).map(|(slow, hit)| (1.0 + slow / 10.0, hit < 0.04));
    let quiet: Vec<u64> = STEP.into_iter().cycle().take(STEPS * STEP.len()).collect();
    let disturbed: Vec<u64> = quiet
        .iter()
        .zip(hits)
        .map(|(&ticks, (slow, hit))| (ticks as f64 * slow) as u64 + 4_000_000 * u64::from(hit))
        .collect();
    let file = trace(1000, &[repeated(disturbed)]);
    let (_, report) = noise(&file, "removed", 1).unwrap();
    assert_eq!((report.places, report.divided), (3, 1));
    let times = replaced(&file, "removed", 1);
    // Of hit repetitions the kind is not known: they are taken for long ones.
    let (mut same, mut longer) = (0, 0);
    for (&time, &quiet) in times[0][FIRST..].iter().zip(&quiet) {
        let typical = if quiet > 4000 { quiet as f64 * 1.05 } else { 2550.0 };
        let is_near = (time as f64 / typical - 1.0).abs() < 0.3;
        (same, longer) = (same + usize::from(is_near), longer + usize::from(!is_near && time < 110_000));
    }
    assert_eq!(same + longer, STEPS * STEP.len());
    assert!((30..80).contains(&longer), "{longer}");
}

#[test]
fn irregular_noise_of_two_modes_is_noise() {
    for (seed, share) in [(5, 0.5), (6, 0.2), (7, 0.05), (8, 0.01)] {
        let times = uniform(seed).map(|hit| if hit < share { 4_000_000 } else { 5000 }).take(5000);
        let file = trace(1000, &[repeated(times)]);
        let (_, report) = noise(&file, "removed", 1).unwrap();
        assert_eq!((report.places, report.divided), (1, 0), "{share}");
    }
}

#[test]
fn few_repetitions_are_kept() {
    // A pair of records that stands there nine times, and ten times.
    let of = |records: usize| trace(1000, &[vec![(100, 100); records]]);
    assert!(matches!(noise(&of(10), "removed", 1), Err(SimError::NoRepetition(_))));
    assert_eq!(noise(&of(11), "removed", 1).unwrap().1.replaced, 10);
    // Ten of one size, nine of another.
    let mut records = repeated([300; 10]);
    records.extend((0..10).map(|n| (1000 + n, 5000)));
    let file = trace(1000, &[records]);
    let times = replaced(&file, "removed:1", 1);
    assert_eq!(times[0][FIRST..17], [300; 10]);
    assert_eq!(times[0][17..], [1000, 1001, 1002, 1003, 1004, 1005, 1006, 1007, 1008, 1009]);
}

#[test]
fn mean_and_quantiles_come_back() {
    let exponential = |seed| uniform(seed).map(|u| (1e6 * (1.0 - 0.2 * (1.0 - u).ln())) as u64);
    const RECORDS: usize = 20_000;
    let file = trace(1000, &[repeated(exponential(1).take(RECORDS)), repeated(exponential(2).take(RECORDS))]);
    let sorted = |mut times: Vec<u64>| {
        times.sort_unstable();
        times
    };
    let mean = |times: &[u64]| times.iter().sum::<u64>() as f64 / times.len() as f64;
    let captured: Vec<u64> = sorted(exponential(1).take(RECORDS).collect());
    for seed in 1..4 {
        let drawn = sorted(replaced(&file, "resampled", seed)[0].split_off(FIRST));
        assert_ne!(drawn, captured);
        let off = mean(&drawn) / mean(&captured) - 1.0;
        assert!(off.abs() < 0.006, "seed {seed}: mean off by {off}");
        for (percent, tolerance) in [(1, 0.01), (10, 0.01), (50, 0.015), (90, 0.025), (99, 0.045)] {
            let at = RECORDS * percent / 100;
            let off = drawn[at] as f64 / captured[at] as f64 - 1.0;
            assert!(off.abs() < tolerance, "seed {seed}: percentile {percent} off by {off}");
        }
    }
    let (_, report) = noise(&file, "resampled", 1).unwrap();
    let typical = captured[RECORDS / 2] as f64;
    let pooled = &report.deviations[0];
    assert!((pooled.mean / (mean(&captured) / typical) - 1.0).abs() < 0.01, "{pooled:?}");
    assert!((pooled.p90 / (captured[RECORDS * 9 / 10] as f64 / typical) - 1.0).abs() < 0.02, "{pooled:?}");
}

#[test]
fn draws_depend_on_seed_task_and_record_alone() {
    let times: Vec<u64> = uniform(3).map(|u| 1000 + (u * 1e6) as u64).take(10_000).collect();
    let file = trace(1000, &[repeated(times.clone()), repeated(times)]);
    let [first, second] = <[Vec<u64>; 2]>::try_from(replaced(&file, "resampled", 1)).unwrap();
    assert_eq!(replaced(&file, "resampled", 1)[0], first);
    assert_ne!(replaced(&file, "resampled", 2)[0], first);
    let correlation = |a: &[u64], b: &[u64]| {
        let mean = |times: &[u64]| times.iter().sum::<u64>() as f64 / times.len() as f64;
        let (mean_a, mean_b) = (mean(a), mean(b));
        let product = |a: &[u64], b: &[u64], mean_a: f64, mean_b: f64| -> f64 {
            a.iter().zip(b).map(|(&a, &b)| (a as f64 - mean_a) * (b as f64 - mean_b)).sum()
        };
        product(a, b, mean_a, mean_b) / (product(a, a, mean_a, mean_a) * product(b, b, mean_b, mean_b)).sqrt()
    };
    let (a, b) = (&first[FIRST..], &second[FIRST..]);
    for (what, found) in [
        ("two tasks", correlation(a, b)),
        ("a record and the next", correlation(&a[1..], &a[..a.len() - 1])),
        ("seeds", correlation(a, &replaced(&file, "resampled", 2)[0][FIRST..])),
    ] {
        // Five standard errors.
        assert!(found.abs() < 0.05, "{what}: {found}");
    }
}

#[test]
fn deviations_are_those_of_places_of_similar_length() {
    // Short computing takes three times as long every third time; long computing never varies.
    let mut records = repeated((0..3000).map(|n| if n % 3 == 0 { 3000 } else { 1000 }));
    records.extend(std::iter::repeat_n((1_234_567, 5000), 1000));
    let file = trace(1000, &[records]);
    let times = &replaced(&file, "resampled", 5)[0];
    let short = &times[FIRST..3000 + FIRST];
    assert!(short.iter().all(|&time| time == 1000 || time == 3000));
    let disturbed = short.iter().filter(|&&time| time == 3000).count();
    // Five standard deviations: 5 · sqrt(3000 · 1/3 · 2/3).
    assert!(disturbed.abs_diff(1000) < 130, "{disturbed}");
    assert!(times[3001 + FIRST..].iter().all(|&time| time == 1_234_567));
}

#[test]
fn deviations_of_another_trace() {
    let own = trace(1000, &[repeated([5000; 1000])]);
    // Of the same length, by another clock.
    let other = trace(10, &[repeated((0..1000).map(|n| if n % 10 == 0 { 800_000 } else { 400_000 }))]);
    let model = format!("resampled:{}", other.path().display());
    let times = &replaced(&own, &model, 1)[0][FIRST..];
    assert!(times.iter().all(|&time| time == 5000 || time == 10_000));
    let doubled = times.iter().filter(|&&time| time == 10_000).count();
    assert!(doubled.abs_diff(100) < 48, "{doubled}");
    assert_eq!(replaced(&own, "resampled", 1)[0][FIRST..], [5000; 1000]);
}

#[test]
fn models_by_name() {
    for text in ["captured", "removed:0.5", "removed:0.1", "resampled", "resampled:other.vefx"] {
        assert_eq!(text.parse::<ComputeNoise>().unwrap().to_string(), text);
    }
    assert_eq!("removed".parse(), Ok(ComputeNoise::Removed { quantile: 0.5 }));
    for text in
        ["", "noise", "removed:", "removed:1.1", "removed:-0.1", "removed:nan", "resampled:", "captured:1"]
    {
        assert!(text.parse::<ComputeNoise>().is_err(), "{text}");
    }
}
