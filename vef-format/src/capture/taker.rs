//! The consumer of a capture's events.

use super::event::{Action, CallSlot, Collective, Detail, Event, Io, PostReceive, RequestId, Send, Transfer};
use super::layout::Clock;
use crate::units::Nanos;
use std::marker::PhantomData;

/// Consumes events.
///
/// Most calls of a program resemble an earlier call: their [shape](super::word) defines all but times and requests. A
/// consumer compiles a shape once, and takes each further call of the shape as the compiled shape and a [`Call`].
pub trait Taker {
    /// The error that stops reading.
    type Error;
    /// A compiled shape.
    type Shape;

    /// Takes the next event.
    ///
    /// # Errors
    /// Any error stops reading.
    fn take(&mut self, event: &Event<'_>) -> Result<(), Self::Error>;

    /// Compiles the shape that `event`, the one just taken, defines.
    fn compile(&mut self, event: Event<'static>) -> Self::Shape;

    /// Takes the next event, which is a `call` of `shape`.
    ///
    /// # Errors
    /// Any error stops reading.
    fn call(&mut self, shape: &mut Self::Shape, call: Call<'_>) -> Result<(), Self::Error>;
}

/// What a call does not have in common with other calls of its shape.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    pub(super) clock: &'a Clock,
    /// Start and end, in ticks.
    pub(super) ticks: (u64, u64),
    /// The thread's next request.
    pub(super) next: RequestId,
}

impl Call<'_> {
    /// When the program entered the call.
    #[inline(always)]
    pub fn start(&self) -> Nanos {
        Nanos(self.clock.nanos(self.ticks.0))
    }

    /// When it returned.
    #[inline(always)]
    pub fn end(&self) -> Nanos {
        Nanos(self.clock.nanos(self.ticks.1))
    }

    /// The request that it starts, if calls of its shape start one.
    #[inline(always)]
    pub fn request(&self) -> RequestId {
        self.next
    }

    /// The event of this call.
    #[inline(always)]
    pub fn event<'e>(&self, call: CallSlot, action: Action<'e>) -> Event<'e> {
        Event { start: self.start(), end: self.end(), thread: self.next.thread, call, action }
    }

    /// Makes `event`, another call of the shape, the event of this call.
    #[inline]
    pub fn repeat(&self, event: &mut Event<'_>) {
        (event.start, event.end, event.thread) = (self.start(), self.end(), self.next.thread);
        match &mut event.action {
            Action::Send(Send { request: Some(request), .. })
            | Action::PostReceive(PostReceive { request, .. })
            | Action::Collective(Collective { request: Some(request), .. })
            | Action::Other {
                detail:
                    Detail::Transfer(Transfer { request: Some(request), .. })
                    | Detail::Io(Io { request: Some(request), .. }),
                ..
            } => *request = self.next,
            _ => {}
        }
    }
}

/// A closure as a [`Taker`].
pub(super) struct Closure<F, E>(F, PhantomData<E>);

impl<E, F: FnMut(&Event<'_>) -> Result<(), E>> Closure<F, E> {
    pub(super) fn new(take: F) -> Self {
        Self(take, PhantomData)
    }
}

impl<E, F: FnMut(&Event<'_>) -> Result<(), E>> Taker for Closure<F, E> {
    type Error = E;
    type Shape = Event<'static>;

    #[inline]
    fn take(&mut self, event: &Event<'_>) -> Result<(), E> {
        (self.0)(event)
    }

    fn compile(&mut self, event: Event<'static>) -> Event<'static> {
        event
    }

    #[inline]
    fn call(&mut self, shape: &mut Event<'static>, call: Call<'_>) -> Result<(), E> {
        call.repeat(shape);
        (self.0)(shape)
    }
}
