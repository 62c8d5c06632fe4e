//! The topology of a node, for mapping by object, from XML of `lstopo` or `hwloc-gather-topology` (hwloc 1
//! and 2).

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use crate::error::{Error, Problem};

/// Number of objects of each kind on a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Topology {
    /// NUMA nodes.
    pub numas: u32,
    /// Processor packages.
    pub sockets: u32,
    /// L3 caches.
    pub l3: u32,
    /// L2 caches.
    pub l2: u32,
    /// L1 data caches.
    pub l1: u32,
    /// Cores.
    pub cores: u32,
    /// Hardware threads.
    pub hwthreads: u32,
}

impl Topology {
    /// A node of which only the number of cores is known: one socket, one NUMA node, no caches.
    pub fn flat(cores: u32) -> Self {
        Topology { numas: 1, sockets: 1, cores, hwthreads: cores, ..Topology::default() }
    }

    /// Parses hwloc's XML; `file` is the file in errors.
    ///
    /// # Errors
    /// The text is not XML, not a topology of hwloc, or has no cores or hardware threads.
    pub fn parse(text: &str, file: &str) -> Result<Self, Error> {
        let line = |offset: u64| {
            text.bytes().take(usize::try_from(offset).unwrap_or(usize::MAX)).filter(|&b| b == b'\n').count()
                + 1
        };
        let mut reader = Reader::from_str(text);
        let mut found = Topology::default();
        let mut is_hwloc = false;
        loop {
            let event = reader
                .read_event()
                .map_err(|e| Problem::Syntax(e.to_string()).at(file, line(reader.error_position())))?;
            match event {
                Event::Start(tag) | Event::Empty(tag) => match tag.name().as_ref() {
                    b"topology" => is_hwloc = true,
                    b"object" => found
                        .count(&tag)
                        .map_err(|problem| problem.at(file, line(reader.buffer_position())))?,
                    _ => {}
                },
                Event::Eof => break,
                _ => {}
            }
        }
        if !is_hwloc || found.cores == 0 && found.hwthreads == 0 {
            let problem = "no hwloc topology with cores in this file (lstopo --of xml writes one)".to_owned();
            return Err(Problem::Syntax(problem).at(file, 1));
        }
        Ok(found)
    }

    fn count(&mut self, tag: &BytesStart<'_>) -> Result<(), Problem> {
        let (mut kind, mut depth, mut cache_type) = (None, None, None);
        for attribute in tag.attributes() {
            let attribute = attribute.map_err(|e| Problem::Syntax(e.to_string()))?;
            match attribute.key.as_ref() {
                b"type" => kind = Some(attribute.value),
                b"depth" => depth = Some(attribute.value),
                b"cache_type" => cache_type = Some(attribute.value),
                _ => {}
            }
        }
        // In hwloc 1 every cache is a "Cache" with a depth, and instruction caches have cache_type 2.
        let level = match (depth.as_deref(), cache_type.as_deref()) {
            (_, Some(b"2")) => None,
            (depth, _) => depth,
        };
        let counter = match (kind.as_deref(), level) {
            (Some(b"NUMANode"), _) => &mut self.numas,
            (Some(b"Package" | b"Socket"), _) => &mut self.sockets,
            (Some(b"L3Cache"), _) | (Some(b"Cache"), Some(b"3")) => &mut self.l3,
            (Some(b"L2Cache"), _) | (Some(b"Cache"), Some(b"2")) => &mut self.l2,
            (Some(b"L1Cache"), _) | (Some(b"Cache"), Some(b"1")) => &mut self.l1,
            (Some(b"Core"), _) => &mut self.cores,
            (Some(b"PU"), _) => &mut self.hwthreads,
            _ => return Ok(()),
        };
        *counter = counter.saturating_add(1);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hwloc_2_and_1() {
        let two = "<?xml version=\"1.0\"?><!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n<topology version=\"2.0\">\
            <object type=\"Machine\"><object type=\"NUMANode\"/><object type=\"Package\"><object type=\"L3Cache\">\
            <object type=\"Core\"><object type=\"PU\"/><object type=\"PU\"/></object><object type=\"Core\">\
            <object type=\"PU\"/></object></object></object></object></topology>";
        let expected =
            Topology { numas: 1, sockets: 1, l3: 1, cores: 2, hwthreads: 3, ..Topology::default() };
        assert_eq!(Topology::parse(two, "t").unwrap(), expected);
        let one = "<topology><object type=\"Machine\"><object type=\"Socket\"><object type=\"Cache\" depth=\"1\" \
            cache_type=\"1\"><object type=\"Cache\" depth=\"1\" cache_type=\"2\"><object type=\"Core\">\
            <object type=\"PU\"/></object></object></object></object></object></topology>";
        let expected = Topology { sockets: 1, l1: 1, cores: 1, hwthreads: 1, ..Topology::default() };
        assert_eq!(Topology::parse(one, "t").unwrap(), expected);
    }

    #[test]
    fn other_files_are_refused_with_their_line() {
        let error = |text| Topology::parse(text, "t.xml").unwrap_err().to_string();
        assert!(error("").starts_with("t.xml:1: no hwloc topology"));
        assert!(error("<a/>").starts_with("t.xml:1: no hwloc topology"));
        assert!(error("<topology>\n<object type=\"Core\"></x>").starts_with("t.xml:2: "));
    }
}
