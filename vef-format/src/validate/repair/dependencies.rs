//! Repairs dependencies and awaited bits.

use super::changes::{Changes, Mended, by_task};
use crate::ids::{CollectiveId, MessageId, Rank};
use crate::record::{Dependency, Message, Record};
use std::collections::{HashMap, HashSet};

/// The point-to-point lines by id.
struct Messages(HashMap<MessageId, Message>);

impl Messages {
    fn of(records: &[(u64, Record)]) -> Self {
        let messages = records.iter().filter_map(|(_, record)| match record {
            Record::Message(message) => Some((message.id, *message)),
            _ => None,
        });
        Self(messages.collect())
    }

    /// Whether `id` is a message to `task` and not one of its own marks.
    fn is_to(&self, id: MessageId, task: Rank) -> bool {
        self.0.get(&id).is_some_and(|message| message.dst == task && !message.is_mark())
    }

    fn is_from(&self, id: MessageId, task: Rank) -> bool {
        self.0.get(&id).is_some_and(|message| message.src == task)
    }
}

/// Replaces invalid dependencies where only one is possible.
pub(super) fn mend(records: &mut [(u64, Record)], log: &mut Changes) {
    let messages = Messages::of(records);
    let mut parts: HashSet<(CollectiveId, Rank)> = HashSet::new();
    let mut received: HashSet<MessageId> = HashSet::new();
    for (_, record) in records.iter() {
        if let Record::Collective(part) = record {
            parts.insert((part.id, part.task));
        }
        if let (Dependency::Received(id), Some(task)) = (record.after(), record.task())
            && messages.is_to(id, task)
        {
            received.insert(id);
        }
    }
    // Awaited messages that no record waits for; then receptions of messages to other tasks.
    let mut unclaimed: HashMap<Rank, HashSet<MessageId>> = HashMap::new();
    for (_, record) in records.iter() {
        if let Record::Message(message) = record
            && message.awaited
            && !received.contains(&message.id)
        {
            unclaimed.entry(message.dst).or_default().insert(message.id);
        }
    }
    for (task, places) in by_task(records) {
        let mut lost = Vec::new();
        for (turn, &at) in places.iter().enumerate() {
            let before = turn.checked_sub(1).map(|turn| records[places[turn]].1.clone());
            let own = match &records[at].1 {
                Record::Message(message) => Dependency::Sent(message.id),
                Record::Collective(part) => Dependency::Collective(part.id),
                Record::Communicator { .. } => continue,
            };
            let sent_before = match &before {
                Some(Record::Message(message)) => Some(message.id),
                _ => None,
            };
            let now = records[at].1.after();
            let right = match now {
                Dependency::Sent(id) if now == own || !messages.is_from(id, task) => {
                    let is_reception = unclaimed.get(&task).is_some_and(|ids| ids.contains(&id));
                    match sent_before {
                        _ if is_reception => Some(Dependency::Received(id)),
                        Some(before) => Some(Dependency::Sent(before)),
                        None => None,
                    }
                }
                Dependency::Received(id) if sent_before == Some(id) && !messages.is_to(id, task) => {
                    Some(Dependency::Sent(id))
                }
                Dependency::Received(id) if !messages.is_to(id, task) => {
                    lost.push(at);
                    None
                }
                Dependency::Collective(id) if now == own || !parts.contains(&(id, task)) => match before {
                    Some(Record::Collective(part)) => Some(Dependency::Collective(part.id)),
                    _ => None,
                },
                _ => None,
            };
            if let Some(right) = right {
                set(&mut records[at], right, "the only event that can have come before", log);
                if let (Dependency::Received(id), Some(ids)) = (right, unclaimed.get_mut(&task)) {
                    ids.remove(&id);
                }
            }
        }
        let Some(ids) = unclaimed.get(&task).filter(|ids| ids.len() == 1) else { continue };
        if let ([at], Some(&only)) = (&lost[..], ids.iter().next()) {
            let why = "the only message to this task that is marked as awaited and that no record waits for";
            set(&mut records[*at], Dependency::Received(only), why, log);
        }
    }
}

fn set((line, record): &mut (u64, Record), right: Dependency, why: &str, log: &mut Changes) {
    let place = match record {
        Record::Message(message) => &mut message.after,
        Record::Collective(part) => &mut part.after,
        Record::Communicator { .. } => return,
    };
    let before = std::mem::replace(place, right);
    log.add(Mended::Dependency, *line, || {
        format!("waits for {} → {}, {why}", describe(before), describe(right))
    });
}

fn describe(dependency: Dependency) -> String {
    match dependency {
        Dependency::Start => "nothing".to_owned(),
        Dependency::Sent(id) => format!("the send of {id}"),
        Dependency::Received(id) => format!("the reception of {id}"),
        Dependency::Collective(id) => id.to_string(),
    }
}

/// Sets the awaited bits by the receivers' records. If those end early, or one waits for an unknown message, the bit may
/// have been right.
pub(super) fn awaited(records: &mut [(u64, Record)], log: &mut Changes) {
    let messages = Messages::of(records);
    let mut received = HashSet::new();
    let mut uncertain = HashSet::new();
    let mut ended: HashMap<Rank, bool> = HashMap::new();
    for (_, record) in records.iter() {
        let Some(task) = record.task() else { continue };
        ended.insert(task, matches!(record, Record::Message(message) if message.is_mark()));
        if let Dependency::Received(id) = record.after() {
            match messages.is_to(id, task) {
                true => _ = received.insert(id),
                false => _ = uncertain.insert(task),
            }
        }
    }
    for (line, record) in records {
        let Record::Message(message) = record else { continue };
        let is_received = received.contains(&message.id);
        let id = message.id;
        if is_received && !message.awaited {
            message.awaited = true;
            log.add(Mended::Awaited, *line, || format!("message {id} is waited for: marked as awaited (+4)"));
        }
        let certain = ended.get(&message.dst) == Some(&true) && !uncertain.contains(&message.dst);
        // Without the bit, an empty message of a task to itself would be a local mark.
        let is_message = Message { awaited: false, ..*message };
        if !is_received && message.awaited && certain && !is_message.is_mark() {
            message.awaited = false;
            log.add(Mended::Awaited, *line, || {
                format!("message {id} is not waited for: no longer marked as awaited (+4)")
            });
        }
    }
}
