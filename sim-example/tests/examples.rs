//! The examples run: what is added from outside the crate gives the times that it must.

#![allow(unreachable_pub, reason = "the examples are programs")]

#[path = "../examples/own_model.rs"]
mod own_model;
#[path = "../examples/own_topology.rs"]
mod own_topology;

#[test]
fn a_model_of_another_crate() {
    own_model::main().unwrap();
}

#[test]
fn a_topology_of_another_crate() {
    own_topology::main().unwrap();
}
