//! How fast traces of other tools become captures: records of DUMPI and events of OTF2 for each second of processor time, both readings
//! and the writing of the capture included, against a copy of the same bytes. Two ranks exchange messages: each posts a receive, sends, and waits for both.
//!
//! How fast GOAL becomes a trace, and a trace of a halo exchange, a container, other formats: records a second.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use interchange::{ExportOptions, Files, Format, Imported, Options, Quiet, export, import};
use std::path::Path;
use vef_benches::processor::timed;

/// Exchanges of each rank.
const EXCHANGES: u32 = 200_000;

/// A file of DUMPI 13.0.0.
fn dumpi(rank: u32) -> (Vec<u8>, u64) {
    let (mut file, mut records, mut now) = (b"\xff\xaa\xddDUMPI\0\0\0\0\0\0\0\0".to_vec(), 0, 0u64);
    let mut record = |label: u16, arguments: &[&[u8]]| {
        file.extend(label.to_be_bytes());
        file.push(8);
        for time in [now, now + 700] {
            file.extend(((time / 1_000_000_000) as u16).to_be_bytes());
            file.extend(((time % 1_000_000_000) as u32).to_be_bytes());
        }
        arguments.iter().for_each(|bytes| file.extend(*bytes));
        now += 2_000;
        records += 1;
    };
    let number = |number: u32| number.to_be_bytes();
    record(124, &[&number(0)]);
    for at in 0..EXCHANGES {
        let peer = number(1 - rank);
        let envelope = [&number(128)[..], &[0, 5], &peer, &number(at % 7), &[0, 2]].concat();
        record(12, &[&envelope, &number(2)]);
        record(8, &[&envelope, &number(3)]);
        record(18, &[&number(2), &number(2), &number(2), &number(3)]);
    }
    record(125, &[]);
    file.extend(293u16.to_be_bytes());
    let header = file.len() as u64;
    file.extend([13, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4]);
    file.extend(b"host\0\0\0\0\0\0\0\0\0\0");
    let sizes = file.len() as u64;
    file.extend(number(6));
    [0, 0, 1, 1, 1, 1].iter().for_each(|&size| file.extend(number(size)));
    file.extend(b"\xff\xaa\xddDUMPI");
    [sizes, 0, 0, header, 8, 0, 0].iter().for_each(|offset: &u64| file.extend(offset.to_be_bytes()));
    (file, records)
}

/// A number of OTF2.
fn packed(number: u64) -> Vec<u8> {
    let bytes = number.to_le_bytes();
    let length = 8 - (number.leading_zeros() / 8) as usize;
    [&[length as u8][..], &bytes[..length]].concat()
}

fn with_length(kind: u8, fields: &[Vec<u8>]) -> Vec<u8> {
    let body = fields.concat();
    [&[kind, body.len() as u8][..], &body].concat()
}

/// One chunk with these records.
fn chunk(records: Vec<u8>) -> Vec<u8> {
    [&[3, 0x42][..], &[0; 16], &records, &[2]].concat()
}

/// The size of the chunks: one a file.
const CHUNK: u64 = 1 << 30;

fn definitions(events: u64) -> Vec<u8> {
    let names = ["", "host", "MPI_Irecv", "MPI_Isend", "MPI_Waitall", "MPI_Init"];
    let mut records = with_length(5, &[packed(1_000_000_000), vec![0; 8], packed(1)]);
    let mut add = |kind: u8, fields: &[Vec<u8>]| records.extend(with_length(kind, fields));
    for (id, name) in (0..).zip(names) {
        add(10, &[packed(id), name.as_bytes().to_vec(), vec![0]]);
        add(15, &[packed(id), packed(id)]);
    }
    add(12, &[packed(0), packed(1), packed(0), vec![0xff]]);
    for rank in 0..2 {
        add(13, &[packed(rank), packed(0), vec![1], packed(0)]);
        add(14, &[packed(rank), packed(0), vec![1], packed(events), packed(rank)]);
    }
    let members = [packed(2), packed(0), packed(1)].concat();
    add(18, &[packed(0), packed(0), vec![6], members.clone(), vec![4, 4, 0]]);
    add(18, &[packed(1), packed(0), vec![4], members, vec![5, 4, 0]]);
    add(22, &[packed(0), packed(0), packed(1), vec![0xff]]);
    chunk(records)
}

fn events(rank: u64) -> (Vec<u8>, u64) {
    let (mut records, mut count, mut now) = (Vec::new(), 0, 0u64);
    let mut call = |region: u64, within: &[Vec<u8>]| {
        let enter = [vec![12], packed(region)].concat();
        let leave = [vec![13], packed(region)].concat();
        for (event, ticks) in std::iter::once((&enter, 700))
            .chain(within.iter().map(|event| (event, 700)))
            .chain([(&leave, 1300)])
        {
            records.push(5);
            records.extend(now.to_le_bytes());
            records.extend(event);
            (now, count) = (now + ticks, count + 1);
        }
    };
    call(5, &[]);
    for at in 0..u64::from(EXCHANGES) {
        let message = |request: u64| [1 - rank, 0, at % 7, 128, request].map(packed);
        let (receive, send) = (2 * at + 1, 2 * at + 2);
        call(2, &[[vec![17], packed(receive)].concat()]);
        call(3, &[with_length(15, &message(send))]);
        call(4, &[with_length(19, &message(receive)), [vec![16], packed(send)].concat()]);
    }
    (chunk(records), count)
}

fn anchor() -> Vec<u8> {
    let mut anchor = b"\x03\x42OTF2\0\x03\x02\x03\0\0".to_vec();
    anchor.extend(CHUNK.to_le_bytes());
    anchor.extend(CHUNK.to_le_bytes());
    anchor.extend([1, 1]);
    [2u64, 30].iter().for_each(|number| anchor.extend(number.to_le_bytes()));
    anchor.extend(b"m\0Score-P\0d\0\0\0\0\0");
    anchor
}

/// The bytes of all files in a directory and those below.
fn contents(directory: &Path) -> Vec<Vec<u8>> {
    let paths = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let of = |path: std::path::PathBuf| match path.is_dir() {
        true => contents(&path),
        false => vec![std::fs::read(path).unwrap()],
    };
    paths.flat_map(of).collect()
}

fn measure(criterion: &mut Criterion, name: &str, directory: &Path, records: u64) {
    let mut group = criterion.benchmark_group(name);
    group.sample_size(10).throughput(Throughput::Elements(records));
    let run = directory.join(name);
    let bytes = contents(&run);
    group.bench_function("a copy of the bytes", |bencher| {
        bencher.iter_custom(|iterations| timed(iterations, || (), |()| bytes.clone()));
    });
    let capture = directory.join("capture");
    group.bench_function("into a capture", |bencher| {
        let into_a_capture = |()| {
            let files = Files::of(std::slice::from_ref(&run)).unwrap();
            let format = Format::of(&files).unwrap();
            let (trace, options) = (directory.join("trace.vef"), Options::default());
            let made = import(format, &files, &trace, || Ok(capture.clone()), &options, &Quiet).unwrap();
            let Imported::Capture { summary, .. } = made else { panic!("no format of calls") };
            assert_eq!(summary.messages, 2 * u64::from(EXCHANGES));
        };
        bencher.iter_custom(|iterations| timed(iterations, || (), into_a_capture));
    });
}

fn interchange(criterion: &mut Criterion) {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| {
        let path = directory.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    };
    let (mut records, mut of_otf2) = (0, 0);
    for rank in 0..2 {
        let (file, count) = dumpi(rank);
        write(&format!("dumpi/run-{rank:04}.bin"), &file);
        records += count;
        let (file, count) = events(rank.into());
        write(&format!("otf2/X/{rank}.evt"), &file);
        write("otf2/X.def", &definitions(count));
        of_otf2 += count;
    }
    write("otf2/X.otf2", &anchor());
    measure(criterion, "dumpi", directory.path(), records);
    measure(criterion, "otf2", directory.path(), of_otf2);
}

/// A halo exchange of 64 ranks to each format that is written, and from GOAL back.
fn exports(criterion: &mut Criterion) {
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join("halo.vefx");
    let halo2d = workloads::pattern("halo2d").unwrap();
    let halo = workloads::Workload { iterations: 1000, ..workloads::Workload::new(halo2d, 64) };
    let mut out = std::io::BufWriter::new(std::fs::File::create(&trace).unwrap());
    let records = halo.write_container(&mut out, Default::default()).unwrap().messages;
    drop(out.into_inner().unwrap());
    let mut group = criterion.benchmark_group("export");
    group.sample_size(10).throughput(Throughput::Elements(records));
    for format in Format::ALL.iter().filter(|format| format.info().writer.is_some()) {
        group.bench_function(format.info().name, |bencher| {
            let written = |()| {
                let work = tempfile::tempdir_in(directory.path()).unwrap();
                let to = work.path().join("out");
                export(*format, &trace, &Default::default(), &to, &ExportOptions::default(), &Quiet).unwrap()
            };
            bencher.iter_custom(|iterations| timed(iterations, || (), written));
        });
    }
    group.finish();
    let mut group = criterion.benchmark_group("import");
    for format in [Format::Goal, Format::GoalBinary] {
        let [schedule, back] = ["schedule", "back.vefx"].map(|name| directory.path().join(name));
        let options = ExportOptions::default();
        let made = export(format, &trace, &Default::default(), &schedule, &options, &Quiet).unwrap();
        let files = Files::of(&[schedule]).unwrap();
        group.sample_size(10).throughput(Throughput::Elements(made.operations));
        group.bench_function(format.info().name, |bencher| {
            let read = |()| import(format, &files, &back, || panic!(), &Options::default(), &Quiet).unwrap();
            bencher.iter_custom(|iterations| timed(iterations, || (), read));
        });
    }
}

criterion_group!(benches, interchange, exports);
criterion_main!(benches);
