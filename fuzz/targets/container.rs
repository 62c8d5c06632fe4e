//! A container, its checksums made right, is refused, or it is read; written anew it has the same records.
#![no_main]

use std::path::Path;
use vef_format::container::{ContainerError, Reader, Section, Settings, Writer};
use vef_format::ids::Rank;
use vef_format::record::Record;

fn read(bytes: Vec<u8>) -> Result<(Reader, Vec<Record>), ContainerError> {
    let reader = Reader::from_bytes(bytes, Path::new("fuzz.vefx"))?;
    for name in reader.section_names() {
        for stream in reader.section(name)? {
            let mut pieces = reader.pieces(&stream);
            while pieces.next(&reader)?.is_some() {}
        }
    }
    let mut records = Vec::new();
    let mut lines = reader.lines();
    while let Some(line) = lines.next()? {
        records.push(line.to_record());
    }
    for task in (0..reader.header().tasks.min(100)).map(Rank) {
        let mut stream = reader.task(task);
        while stream.next()?.is_some() {}
        for section in Section::ALL {
            let Ok(mut notes) = reader.notes(section, task) else { continue };
            while let Ok(Some(_)) = notes.next(&reader) {}
        }
    }
    Ok((reader, records))
}

vef_fuzz::target!(|bytes| {
    let mut bytes = bytes.to_vec();
    vef_fuzz::reseal(&mut bytes);
    let Ok((reader, records)) = read(bytes) else { return };
    let settings = Settings { compress: false, keep_order: reader.keeps_order() };
    let mut writer = Writer::new(Vec::new(), reader.header(), reader.about(), settings).expect("it was read");
    for record in &records {
        writer.line(&record.borrowed()).expect("what was read can be written");
    }
    // The number of distinct collectives is the one count that a reader does not know before it has read all.
    if let Ok(again) = writer.finish() {
        let (_, again) = read(again).expect("what was written can be read");
        assert_eq!(again, records);
    }
});
