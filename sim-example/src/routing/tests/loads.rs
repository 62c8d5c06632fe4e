//! Choices between routes by the loads of their links.

use super::*;

#[test]
fn loads_decide() {
    let decide = |routing: &str, text: &str, dst: u32, loaded: usize, load: u64, seed: u64| {
        let topology = build(text);
        let (router, minimal) =
            (router(&topology, routing, seed).unwrap(), router(&topology, "minimal", 0).unwrap());
        let link = minimal.route(0, dst).nth(loaded).unwrap();
        let mut route = router.start(0, dst, router.key(0, dst, seed));
        router.next(&mut route, &One(link, load)).link == link
    };
    for seed in 0..20 {
        // Adaptive routing avoids the loaded link; ECMP does not.
        assert!(!decide("adaptive", "fattree:4x4x4", 7, 1, 1, seed));
        assert!(!decide("adaptive", "torus:5x5", 6, 1, 1, seed));
        assert!(!decide("adaptive", "hyperx:3x3", 4, 1, 1, seed));
        // UGAL takes the detour only if the load times length of the shortest route exceeds the threshold.
        let ugal = |load| decide("ugal:100", "hyperx:4", 1, 1, load, seed);
        assert!(ugal(100) && !ugal(101));
        let ugal = |load| decide("ugal:100", "hyperx:4x4", 5, 1, load, seed);
        assert!(ugal(50) && (!ugal(51) || ugal(51)));
    }
    let hashed = (0..20).filter(|&seed| decide("ecmp:message", "fattree:4x4x4", 7, 1, 9, seed));
    assert!((1..15).contains(&hashed.count()));
    let both = (0..20).filter(|&seed| decide("adaptive", "torus:5x5", 6, 1, 0, seed));
    assert!((1..20).contains(&both.count()), "without load either dimension comes first");
}

/// One link with a load, in bytes.
struct One(LinkId, u64);
impl Load for One {
    fn load(&self, link: LinkId) -> u64 {
        if link == self.0 { self.1 } else { 0 }
    }

    fn of_bytes(&self, bytes: Bytes) -> u64 {
        bytes.0
    }
}

/// A load behind the first link: UGAL-G sees it, UGAL-L does not.
#[test]
fn ugal_global_looks_at_whole_routes() {
    let topology = build("hyperx:4x4");
    let minimal = router(&topology, "minimal", 0).unwrap();
    let (first, second) = (minimal.route(0, 5).nth(1).unwrap(), minimal.route(0, 5).nth(2).unwrap());
    let detours = |routing: &str, load: u64| {
        let takes = |seed: &u64| {
            let router = router(&topology, routing, *seed).unwrap();
            let mut route = router.start(0, 5, router.key(0, 5, *seed));
            router.next(&mut route, &One(second, load)).link != first
        };
        (0..40).filter(takes).count()
    };
    assert_eq!([detours("ugal:100", 1000), detours("ugal:global:100", 100)], [0, 0]);
    assert!(detours("ugal:global:100", 101) > 20);
}

/// A shortest route of a dragonfly is decided again at the router with the global cable, whose load the first router does not see: behind
/// it, it may turn to another router of the group. Its links have the classes of l l g l g l.
#[test]
fn progressive_routes_leave_the_shortest_way_within_the_group() {
    let topology = build("dragonfly:1x4x2");
    let minimal = router(&topology, "minimal", 0).unwrap();
    // A destination in another group, to which another router than the first has the cable.
    let kind = |link: LinkId| topology.kind(link);
    let shortest = |dst: &u32| -> Vec<LinkId> { minimal.route(0, *dst).collect() };
    let dst = (4..topology.nodes())
        .find(|dst| kind(shortest(dst)[1]) == LinkClass::LOCAL && shortest(dst).len() == 5)
        .unwrap();
    let (first, global) = (shortest(&dst)[1], shortest(&dst)[2]);
    assert_eq!(kind(global), LinkClass::GLOBAL);
    let routes = |routing: &str, load: u64| -> Vec<Vec<(LinkId, u8)>> {
        let router = router(&topology, routing, 3).unwrap();
        let one = |n| {
            let mut route = router.start(0, dst, router.key(0, dst, n));
            std::iter::from_fn(|| Some(router.next(&mut route, &One(global, load))).filter(|hop| !hop.last))
                .map(|hop| (hop.link, hop.class))
                .collect()
        };
        (0..60).map(one).collect()
    };
    // The first router sees no load, and UGAL keeps to the shortest way.
    assert!(routes("ugal", 1000).iter().all(|route| route[1].0 == global));
    assert!(routes("par:2000", 1000).iter().all(|route| route[1].0 == global));
    let revised = routes("par", 1000);
    let mut turned = 0;
    for route in &revised {
        let classes: Vec<u8> = route.iter().map(|&(_, class)| class).collect();
        let locals = route.iter().take_while(|&&(link, _)| kind(link) == LinkClass::LOCAL).count();
        assert!(route[0].0 == first && route[1].0 != global);
        turned += usize::from(locals == 2);
        // Local links: 0, 1 in the first group, 2 and 3 in the following ones; global links 0 and 1.
        let mut expected = Vec::new();
        let mut globals = 0;
        for (place, &(link, _)) in route.iter().enumerate() {
            expected.push(match kind(link) {
                LinkClass::GLOBAL => globals,
                _ if globals == 0 => place as u8,
                _ => globals + 1,
            });
            globals += u8::from(kind(link) == LinkClass::GLOBAL);
        }
        assert_eq!((classes, globals), (expected, 2));
    }
    // Of eight groups, six intermediates are behind three other routers, of which each has two cables.
    assert!((30..60).contains(&turned), "{turned} of 60");
}

/// Two equally long ways round a ring, from a router with an even and one with an odd coordinate. With a rule by the coordinate, UGAL gave
/// some nodes of a torus 0.84 of the mean of tornado traffic, and `adaptive` took the loaded direction.
#[test]
fn ties_do_not_depend_on_the_router() {
    let topology = build("torus:8");
    let minimal = router(&topology, "dor", 0).unwrap();
    let ugal = router(&topology, "ugal", 1).unwrap();
    let adaptive = router(&topology, "adaptive", 1).unwrap();
    for (src, dst) in [(0, 4), (1, 5)] {
        let by_rule = minimal.route(src, dst).nth(1).unwrap();
        let first = |router: &Router<'_>, number, load| {
            let mut route = router.start(src, dst, router.key(src, dst, number));
            router.next(&mut route, &One(by_rule, load)).link
        };
        let same = (0..400).filter(|&number| first(&ugal, number, 0) == by_rule).count();
        assert!((150..250).contains(&same), "from {src}: {same} of 400");
        assert!((0..40).all(|number| first(&adaptive, number, 1) != by_rule), "from {src}");
        // The other routers of the route keep the direction that was taken.
        let mut route = adaptive.start(src, dst, 0);
        let links =
            std::iter::from_fn(|| Some(adaptive.next(&mut route, &One(by_rule, 1))).filter(|hop| !hop.last));
        assert_eq!(links.count(), 4);
    }
}
