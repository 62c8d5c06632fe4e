//! A job's source, whichever it is.

use super::loaded::Reading;
use super::{Container, Source, SourceError, Stream};
use std::sync::Arc;
use vef_format::container::Streams;
use vef_format::ids::Rank;
use vef_format::raw::{KIND, NOTHING, Raw};

/// A job's source.
#[derive(Debug)]
#[repr(u8)]
pub(crate) enum Feed {
    Loaded(Reading),
    Stream(Box<Stream>),
    Container(Box<Container>),
}

impl Feed {
    /// The container that is read as it is, if it is one.
    #[inline(always)]
    pub(crate) fn plain(&mut self) -> Option<&mut Streams> {
        match self {
            Self::Container(source) => source.plain(),
            _ => None,
        }
    }

    /// Puts the next record of a task, or [`Raw::NOTHING`], into `next`.
    #[inline(never)]
    pub(crate) fn next(&mut self, task: Rank, next: &mut Raw) -> Result<(), SourceError> {
        match self {
            Self::Container(source) => source.next(task, next),
            Self::Loaded(source) => {
                *next = source.next(task);
                Ok(())
            }
            Self::Stream(source) => source.next(task, next),
        }
    }

    /// How many of the records that a task has read were pauses ([`PAUSE`](crate::sequence::PAUSE)).
    pub(crate) fn pauses_read(&self, task: Rank) -> u64 {
        match self {
            Self::Container(source) => source.pauses_read(task),
            Self::Loaded(_) | Self::Stream(_) => 0,
        }
    }

    /// Makes sure that the trace can be read any number of times side by side: a text goes into memory.
    pub(crate) fn make_shareable(&mut self) -> Result<(), SourceError> {
        if let Self::Stream(stream) = self {
            *self = Self::Loaded(Arc::new(stream.load()?).source());
        }
        Ok(())
    }

    /// Another reading of the trace, from its start.
    pub(crate) fn again(&self) -> Result<Self, SourceError> {
        Ok(match self {
            Self::Loaded(source) => Self::Loaded(source.again()),
            Self::Stream(source) => Self::Loaded(Arc::new(source.load()?).source()),
            Self::Container(source) => Self::Container(Box::new(source.again()?)),
        })
    }

    /// Reads the trace once more, and gives `see` each record; with `sends`, also what [`Feed::tell_sends`] asks for.
    pub(crate) fn survey(&self, sends: bool, see: &mut dyn FnMut(Rank, &Raw)) -> Result<(), SourceError> {
        if let Self::Stream(stream) = self {
            return stream.survey(see);
        }
        let mut source = self.again()?;
        if sends {
            source.tell_sends()?;
        }
        for task in (0..self.header().tasks).map(Rank) {
            let mut record = Raw::NOTHING;
            loop {
                source.next(task, &mut record)?;
                if record.tag & KIND == NOTHING {
                    break;
                }
                see(task, &record);
            }
        }
        Ok(())
    }

    /// Asks for [`STARTED`](crate::sequence::STARTED) and [`PAUSE`](crate::sequence::PAUSE), where the trace knows.
    pub(crate) fn tell_sends(&mut self) -> Result<(), SourceError> {
        match self {
            Self::Container(source) => source.tell_sends(),
            _ => Ok(()),
        }
    }
}

/// All but [`Feed::next`] is rare.
impl std::ops::Deref for Feed {
    type Target = dyn Source;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Loaded(source) => source,
            Self::Stream(source) => &**source,
            Self::Container(source) => &**source,
        }
    }
}

impl std::ops::DerefMut for Feed {
    fn deref_mut(&mut self) -> &mut Self::Target {
        match self {
            Self::Loaded(source) => source,
            Self::Stream(source) => &mut **source,
            Self::Container(source) => &mut **source,
        }
    }
}
