//! PHOLD on simrs: `phold-simrs --lps N --events-per-lp N --remote P --mean T --lookahead T --end T --seed N`.
//!
//! A component gets its events by a shared reference, so what it changes lies in cells.
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

use simrs::{Component, ComponentId, Executor, Scheduler, Simulation, State};

#[derive(Clone, Copy)]
struct Parameters {
    remote: f64,
    mean: f64, // of the random part of a delay
    lookahead: f64,
}

#[derive(Debug)]
struct Hop;

struct Lp {
    everybody: Rc<RefCell<Vec<ComponentId<Hop>>>>,
    parameters: Parameters,
    random: Cell<u64>,
    executed: Rc<Cell<u64>>,
}

impl Component for Lp {
    type Event = Hop;

    fn process_event(&self, own: ComponentId<Hop>, _: &Hop, scheduler: &mut Scheduler, _: &mut State) {
        self.executed.set(self.executed.get() + 1);
        let mut random = self.random.get();
        let to = if uniform(&mut random) < self.parameters.remote {
            let everybody = self.everybody.borrow();
            everybody[(uniform(&mut random) * everybody.len() as f64) as usize]
        } else {
            own
        };
        scheduler.schedule(delay(&mut random, self.parameters), to, Hop);
        self.random.set(random);
    }
}

fn uniform(state: &mut u64) -> f64 {
    *state = state.wrapping_add(0x9E3779B97F4A7C15); // splitmix64
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D049BB133111EB);
    ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}

fn delay(random: &mut u64, parameters: Parameters) -> Duration {
    Duration::from_secs_f64(parameters.lookahead - parameters.mean * (1.0 - uniform(random)).ln())
}

fn main() {
    let (mut lps, mut events_per_lp, mut seed) = (8192, 1, 1);
    let (mut remote, mut mean, mut lookahead, mut end) = (0.25, 1.0, 0.1, 80.0);
    let words: Vec<String> = std::env::args().skip(1).collect();
    for pair in words.chunks(2) {
        let value = pair.get(1).unwrap_or_else(|| panic!("{} needs a value", pair[0]));
        let real = || value.parse::<f64>().unwrap_or_else(|_| panic!("{} {value} is no number", pair[0]));
        match pair[0].as_str() {
            "--lps" => lps = real() as usize,
            "--events-per-lp" => events_per_lp = real() as usize,
            "--seed" => seed = real() as u64,
            "--remote" => remote = real(),
            "--mean" => mean = real(),
            "--lookahead" => lookahead = real(),
            "--end" => end = real(),
            other => panic!("no option {other}"),
        }
    }
    let parameters = Parameters { remote, mean: mean - lookahead, lookahead };

    let mut simulation = Simulation::default();
    let everybody = Rc::new(RefCell::new(Vec::with_capacity(lps)));
    let executed = Rc::new(Cell::new(0));
    for id in 0..lps {
        let mut random = (seed << 32) + id as u64;
        let first: Vec<Duration> = (0..events_per_lp).map(|_| delay(&mut random, parameters)).collect();
        let random = Cell::new(random);
        let own = simulation.add_component(Lp { everybody: everybody.clone(), parameters, random, executed: executed.clone() });
        for delay in first {
            simulation.schedule(delay, own, Hop);
        }
        everybody.borrow_mut().push(own);
    }
    let began = Instant::now();
    simulation.execute(Executor::timed(Duration::from_secs_f64(end)));
    let seconds = began.elapsed().as_secs_f64();
    let events = executed.get();
    println!(
        "{{\"ops\":{events},\"ns_per_op\":{},\"seconds\":{seconds},\"events\":{events},\"events_per_s\":{}}}",
        seconds * 1e9 / events as f64,
        events as f64 / seconds
    );
}
