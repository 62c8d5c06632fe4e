//! What a topology is to the models: numbered links, and the way from one node to another, hop by hop.
//!
//! Links are directed; a cable is two of them. The link from node `n` into the network (its *injection* link)
//! has number `2n`, the one out of the network into node `n` (*ejection*) `2n + 1`, in every topology; the
//! links between switches follow.

use std::fmt;

/// A directed link, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LinkId(pub u32);

impl LinkId {
    /// The link from `node` into the network.
    #[inline]
    pub const fn injection(node: u32) -> Self {
        Self(2 * node)
    }

    /// The link out of the network into `node`.
    #[inline]
    pub const fn ejection(node: u32) -> Self {
        Self(2 * node + 1)
    }

    /// The number as an index.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// An end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Vertex {
    /// An end node.
    Node(u32),
    /// A switch.
    Switch {
        /// Links between it and the nearest node: 1 where nodes are attached.
        level: u8,
        /// Which of that level, from 0.
        index: u32,
    },
}

/// A topology and its deterministic shortest-path routing.
pub trait Routing {
    /// How far on its way a message is. Small: every message in flight holds one.
    type Walk: Copy + fmt::Debug;

    /// Number of end nodes.
    fn nodes(&self) -> u32;

    /// Number of links, those of the nodes included.
    fn links(&self) -> u32;

    /// The way from `src` to `dst`, both below [`Routing::nodes`], behind the injection link of `src`. The way of a
    /// node to itself leads through its switch and back.
    fn walk(&self, src: u32, dst: u32) -> Self::Walk;

    /// The next link of the way; after the ejection link of `dst`, `None`.
    fn next(&self, walk: &mut Self::Walk) -> Option<LinkId>;

    /// Number of links on the way from `src` to `dst`.
    fn distance(&self, src: u32, dst: u32) -> u32;

    /// Where `link` begins and ends; `None` if there is no such link.
    fn ends(&self, link: LinkId) -> Option<(Vertex, Vertex)>;

    /// How people call `vertex`.
    fn vertex_name(&self, vertex: Vertex) -> String;

    /// How people call `link`: `node3->leaf0`; empty if there is no such link.
    fn link_name(&self, link: LinkId) -> String {
        match self.ends(link) {
            Some((from, to)) => format!("{}->{}", self.vertex_name(from), self.vertex_name(to)),
            None => String::new(),
        }
    }

    /// The links from `src` to `dst`, in order.
    fn route(&self, src: u32, dst: u32) -> Route<'_, Self>
    where
        Self: Sized,
    {
        Route { routing: self, injection: Some(LinkId::injection(src)), walk: self.walk(src, dst) }
    }
}

/// The links of one way through a topology; made by [`Routing::route`], without allocation.
pub struct Route<'a, R: Routing> {
    routing: &'a R,
    injection: Option<LinkId>,
    walk: R::Walk,
}

impl<R: Routing> Iterator for Route<'_, R> {
    type Item = LinkId;

    fn next(&mut self) -> Option<LinkId> {
        self.injection.take().or_else(|| self.routing.next(&mut self.walk))
    }
}
