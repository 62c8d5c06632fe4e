//! The nodes of an execution trace.

use super::protobuf::{Fields, Garbled, Value};

/// A node, as far as an import needs it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Node {
    pub(super) id: u64,
    pub(super) name: String,
    /// See [`kind`].
    pub(super) kind: u64,
    pub(super) data_dependencies: Vec<u64>,
    /// Number of control dependencies: the call tree, which an import leaves out.
    pub(super) control_dependencies: u64,
    /// µs.
    pub(super) start: u64,
    /// µs.
    pub(super) duration: u64,
    /// Operations of computing, and bytes of memory that it accesses.
    pub(super) operations: f64,
    pub(super) tensor: f64,
    pub(super) is_cpu_op: bool,
    pub(super) comm_size: Option<u64>,
    pub(super) comm_type: Option<u64>,
    pub(super) comm_src: Option<u64>,
    pub(super) comm_dst: Option<u64>,
    pub(super) comm_tag: Option<u64>,
    pub(super) group: Option<String>,
    /// The first of these attributes with a value that is no number from 0 on.
    pub(super) wrong: Option<&'static str>,
    pub(super) tid: u64,
    /// Of metadata: the values of the inputs, which may list groups.
    pub(super) inputs: String,
}

/// Attributes that have no sign.
const SIGNLESS: [&str; 6] = ["comm_size", "comm_type", "comm_src", "comm_dst", "num_ops", "tensor_size"];

/// The kinds of nodes.
pub(super) mod kind {
    pub(in super::super) const METADATA: u64 = 1;
    pub(in super::super) const COMP: u64 = 4;
    pub(in super::super) const SEND: u64 = 5;
    pub(in super::super) const RECV: u64 = 6;
    pub(in super::super) const COLL: u64 = 7;
}

/// The name of a kind.
pub(super) fn name_of(kind: u64) -> &'static str {
    match kind {
        kind::METADATA => "METADATA",
        2 => "MEM_LOAD",
        3 => "MEM_STORE",
        kind::COMP => "COMP",
        kind::SEND => "COMM_SEND",
        kind::RECV => "COMM_RECV",
        kind::COLL => "COMM_COLL",
        8..=10 => "storage",
        _ => "unknown kind",
    }
}

/// Why a node is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unread {
    Garbled(Garbled),
    /// The attributes of a schema before 0.0.4.
    OldSchema,
}

impl From<Garbled> for Unread {
    fn from(garbled: Garbled) -> Self {
        Self::Garbled(garbled)
    }
}

impl Node {
    /// Parses a message.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, Unread> {
        let mut node = Self::default();
        let mut fields = Fields::new(bytes);
        while let Some((number, value)) = fields.next()? {
            match (number, value) {
                (1, Value::Number(id)) => node.id = id,
                (2, Value::Bytes(name)) => node.name = String::from_utf8_lossy(name).into_owned(),
                (3, Value::Number(kind)) => node.kind = kind,
                (4, Value::Number(_)) => node.control_dependencies += 1,
                (4, Value::Bytes(packed)) => {
                    let mut numbers = Fields::new(packed);
                    while !numbers.is_empty() {
                        numbers.number()?;
                        node.control_dependencies += 1;
                    }
                }
                (5, Value::Number(id)) => node.data_dependencies.push(id),
                (5, Value::Bytes(packed)) => {
                    let mut numbers = Fields::new(packed);
                    while !numbers.is_empty() {
                        node.data_dependencies.push(numbers.number()?);
                    }
                }
                (6, Value::Number(start)) => node.start = start,
                (7, Value::Number(duration)) => node.duration = duration,
                (8, Value::Bytes(inputs)) if node.kind == kind::METADATA => {
                    let mut fields = Fields::new(inputs);
                    while let Some((number, value)) = fields.next()? {
                        if let (1, Value::Bytes(values)) = (number, value) {
                            node.inputs = String::from_utf8_lossy(values).into_owned();
                        }
                    }
                }
                (10, Value::Bytes(attribute)) => node.attribute(attribute)?,
                _ => {}
            }
        }
        Ok(node)
    }

    fn attribute(&mut self, bytes: &[u8]) -> Result<(), Unread> {
        let mut fields = Fields::new(bytes);
        let (mut name, mut found) = (&b""[..], None);
        while let Some((number, value)) = fields.next()? {
            match (number, value) {
                (1, Value::Bytes(bytes)) => name = bytes,
                (2, Value::Number(_)) => return Err(Unread::OldSchema),
                // The documentation of the attribute.
                (2, _) => {}
                _ => found = Some((number, value)),
            }
        }
        let Some((number, value)) = found else { return Ok(()) };
        let text = match value {
            Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            _ => String::new(),
        };
        let whole = integer(number, value);
        let amount = amount(number, value);
        let is_read = match name {
            b"num_ops" | b"tensor_size" => amount.is_some(),
            _ => whole.is_some(),
        };
        let is_number = matches!(value, Value::Number(_) | Value::Four(_) | Value::Eight(_));
        if !is_read
            && is_number
            && let Some(name) = SIGNLESS.iter().find(|known| known.as_bytes() == name)
        {
            self.wrong.get_or_insert(name);
        }
        match name {
            b"comm_size" => self.comm_size = whole,
            b"comm_type" => self.comm_type = whole,
            b"comm_src" => self.comm_src = whole,
            b"comm_dst" => self.comm_dst = whole,
            b"comm_tag" => self.comm_tag = whole,
            b"num_ops" => self.operations = amount.unwrap_or(0.0),
            b"tensor_size" => self.tensor = amount.unwrap_or(0.0),
            b"is_cpu_op" => self.is_cpu_op = whole.is_some_and(|value| value != 0),
            b"tid" => self.tid = whole.unwrap_or(0),
            b"pg_name" | b"comm_group" => {
                let name = whole.map_or(text, |number| number.to_string());
                if !name.is_empty() {
                    self.group = Some(name);
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// The number in the value of an attribute, which may be a fraction; `None` of other types and negative numbers.
fn amount(number: u64, value: Value<'_>) -> Option<f64> {
    let fraction = match (number, value) {
        (3, Value::Four(bytes)) => Some(f32::from_le_bytes(bytes).into()),
        (5, Value::Eight(bytes)) => Some(f64::from_le_bytes(bytes)),
        _ => integer(number, value).map(|whole| whole as f64),
    };
    fraction.filter(|fraction| *fraction >= 0.0)
}

/// The integer in the value of an attribute, whichever type its writer chose; `None` of other types and negative numbers.
fn integer(number: u64, value: Value<'_>) -> Option<u64> {
    let unsigned = |number: i64| u64::try_from(number).ok();
    match (number, value) {
        // sint32, sint64
        (15 | 17, Value::Number(coded)) => unsigned((coded >> 1) as i64 ^ -((coded & 1) as i64)),
        // int32, int64: negative numbers have ten bytes.
        (7 | 9, Value::Number(number)) => unsigned(number.cast_signed()),
        (_, Value::Number(number)) => Some(number),
        (23, Value::Four(bytes)) => unsigned(i32::from_le_bytes(bytes).into()),
        (19, Value::Four(bytes)) => Some(u32::from_le_bytes(bytes).into()),
        (25, Value::Eight(bytes)) => unsigned(i64::from_le_bytes(bytes)),
        (21, Value::Eight(bytes)) => Some(u64::from_le_bytes(bytes)),
        _ => None,
    }
}
