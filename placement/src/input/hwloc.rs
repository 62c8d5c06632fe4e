//! The objects of a node, for mapping by object, from XML of `lstopo` or `hwloc-gather-topology` (hwloc 1 and
//! 2).

use std::path::Path;

use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};

use super::lines::read_text;
use crate::error::Error;

/// A kind of object on a node that processes can be mapped to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Object {
    /// The whole node.
    Node,
    /// A NUMA node.
    Numa,
    /// A processor package.
    Socket,
    /// An L3 cache.
    L3,
    /// An L2 cache.
    L2,
    /// An L1 data cache.
    L1,
    /// A core.
    Core,
    /// A hardware thread.
    Hwthread,
}

/// Number of objects of each kind on a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ObjectCounts([u32; 8]);

impl ObjectCounts {
    /// One node with these objects.
    fn of(counts: &[(Object, u32)]) -> Self {
        let mut all = [0; 8];
        all[Object::Node as usize] = 1;
        for &(kind, count) in counts {
            all[kind as usize] = count;
        }
        ObjectCounts(all)
    }

    /// A node of which only the number of cores is known: one socket, one NUMA node, no caches.
    pub(crate) fn flat(cores: u32) -> Self {
        let counts =
            [(Object::Numa, 1), (Object::Socket, 1), (Object::Core, cores), (Object::Hwthread, cores)];
        Self::of(&counts)
    }

    /// Number of objects of a kind.
    pub(crate) fn count(&self, kind: Object) -> u32 {
        self.0[kind as usize]
    }

    /// Reads hwloc's XML.
    pub(crate) fn read(path: &Path) -> Result<Self, Error> {
        Self::parse(&read_text(path)?, &path.display().to_string())
    }

    fn parse(text: &str, file: &str) -> Result<Self, Error> {
        let mut reader = Reader::from_str(text);
        let mut found = Self::of(&[]);
        let mut is_hwloc = false;
        let error_at = |error: quick_xml::Error, offset: u64| {
            let before = text.bytes().take(usize::try_from(offset).unwrap_or(usize::MAX));
            Error::new(error.to_string()).at(file, before.filter(|&byte| byte == b'\n').count() + 1)
        };
        loop {
            match reader.read_event().map_err(|error| error_at(error, reader.error_position()))? {
                Event::Start(tag) | Event::Empty(tag) => match tag.name().as_ref() {
                    b"topology" => is_hwloc = true,
                    b"object" => {
                        let kind =
                            kind_of(&tag).map_err(|error| error_at(error, reader.buffer_position()))?;
                        if let Some(kind) = kind {
                            found.0[kind as usize] = found.count(kind).saturating_add(1);
                        }
                    }
                    _ => {}
                },
                Event::Eof => break,
                _ => {}
            }
        }
        if !is_hwloc || found.count(Object::Core) == 0 && found.count(Object::Hwthread) == 0 {
            let message = "no hwloc topology with cores in this file (lstopo --of xml writes one)";
            return Err(Error::new(message).at(file, 1));
        }
        Ok(found)
    }
}

/// The kind of an XML object, if it is counted.
fn kind_of(tag: &BytesStart<'_>) -> Result<Option<Object>, quick_xml::Error> {
    let attribute = |name: &str| -> Result<Option<Vec<u8>>, quick_xml::Error> {
        let Some(found) = tag.try_get_attribute(name)? else { return Ok(None) };
        let value = found.normalized_value(XmlVersion::Implicit1_0)?.into_owned();
        Ok(Some(value.into_bytes()))
    };
    let (kind, cache_type) = (attribute("type")?, attribute("cache_type")?);
    // In hwloc 1 every cache is a "Cache" with a depth, and instruction caches have cache_type 2.
    let depth = if cache_type.as_deref() == Some(b"2") { None } else { attribute("depth")? };
    Ok(match (kind.as_deref(), depth.as_deref()) {
        (Some(b"NUMANode"), _) => Some(Object::Numa),
        (Some(b"Package" | b"Socket"), _) => Some(Object::Socket),
        (Some(b"L3Cache"), _) | (Some(b"Cache"), Some(b"3")) => Some(Object::L3),
        (Some(b"L2Cache"), _) | (Some(b"Cache"), Some(b"2")) => Some(Object::L2),
        (Some(b"L1Cache"), _) | (Some(b"Cache"), Some(b"1")) => Some(Object::L1),
        (Some(b"Core"), _) => Some(Object::Core),
        (Some(b"PU"), _) => Some(Object::Hwthread),
        _ => None,
    })
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
        let expected = [
            (Object::Numa, 1),
            (Object::Socket, 1),
            (Object::L3, 1),
            (Object::Core, 2),
            (Object::Hwthread, 3),
        ];
        assert_eq!(ObjectCounts::parse(two, "t").unwrap(), ObjectCounts::of(&expected));
        let one = "<topology><object type=\"Machine\"><object type=\"Socket\"><object type=\"Cache\" depth=\"1\" \
            cache_type=\"1\"><object type=\"Cache\" depth=\"1\" cache_type=\"2\"><object type=\"Core\">\
            <object type=\"PU\"/></object></object></object></object></object></topology>";
        let expected = [(Object::Socket, 1), (Object::L1, 1), (Object::Core, 1), (Object::Hwthread, 1)];
        assert_eq!(ObjectCounts::parse(one, "t").unwrap(), ObjectCounts::of(&expected));
    }

    #[test]
    fn other_files_are_refused_with_their_line() {
        let error = |text| ObjectCounts::parse(text, "t.xml").unwrap_err().to_string();
        assert!(error("").starts_with("t.xml:1: no hwloc topology"));
        assert!(error("<a/>").starts_with("t.xml:1: no hwloc topology"));
        assert!(error("<topology>\n<object type=\"Core\"></x>").starts_with("t.xml:2: "));
    }
}
