//! Hand-overs between threads under every memory order that the language allows, as far as loom explores it.
//!
//!     loom-models --list              SCENARIO, and after a tab each weakening that must be found in it
//!     loom-models SCENARIO [SITE]     with the order at SITE relaxed; a panic is a finding
//!
//! A scenario is explored with up to three preemptions.  loom does not move a load behind a later store of its thread.
mod block;
mod lock;
mod queue;

use loom::sync::atomic::Ordering;
use std::sync::OnceLock;

static WEAKENED: OnceLock<String> = OnceLock::new();

pub fn weakened(site: &str) -> bool {
    WEAKENED.get().is_some_and(|name| name == site)
}

/// The order at a site that can be weakened.
pub fn order(site: &str, right: Ordering) -> Ordering {
    if weakened(site) { Ordering::Relaxed } else { right }
}

pub struct Scenario {
    pub name: &'static str,
    pub run: fn(),
    pub must_fail: &'static [&'static str],
}

fn main() {
    let scenarios: Vec<&Scenario> = [queue::SCENARIOS, block::SCENARIOS, lock::SCENARIOS].into_iter().flatten().collect();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|a| a == "--list") {
        for scenario in scenarios {
            println!("{}", [&[scenario.name], scenario.must_fail].concat().join("\t"));
        }
        return;
    }
    let name = arguments.first().expect("a scenario");
    if let Some(site) = arguments.get(1) {
        WEAKENED.set(site.clone()).unwrap();
    }
    let scenario = scenarios.iter().find(|s| s.name == name).expect("no such scenario");
    let runs = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
    let counter = runs.clone();
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    let run = scenario.run;
    builder.check(move || {
        counter.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        run();
    });
    println!("{} executions", runs.load(std::sync::atomic::Ordering::Relaxed));
}
