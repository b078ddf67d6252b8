//! PHOLD on NexoSim: `phold-nexosim --lps N --events-per-lp N --remote P --mean T --lookahead T --end T --seed N --threads N`.
//!
//! NexoSim has no events for other models at a later time: a message arrives at once, and its receiver schedules it.  Nor can a
//! model have thousands of outputs: the four neighbours on a torus stand for all others.
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use nexosim::model::{Context, Model, schedulable};
use nexosim::ports::Output;
use nexosim::simulation::{Mailbox, SimInit};
use nexosim::time::MonotonicTime;
use serde::{Deserialize, Serialize};

static EXECUTED: AtomicU64 = AtomicU64::new(0);

#[derive(Clone, Copy, Serialize, Deserialize)]
struct Parameters {
    lps: usize,
    events_per_lp: usize,
    remote: f64,
    mean: f64, // of the random part of a delay
    lookahead: f64,
    end: f64,
}

#[derive(Serialize, Deserialize)]
struct Lp {
    neighbours: Vec<Output<Duration>>,
    parameters: Parameters,
    random: u64,
    executed: u64,
}

#[Model]
impl Lp {
    #[nexosim(init)]
    async fn init(&mut self, cx: &Context<Self>) {
        for _ in 0..self.parameters.events_per_lp {
            let delay = self.delay();
            self.arrive(delay, cx).await;
        }
    }

    async fn arrive(&mut self, delay: Duration, cx: &Context<Self>) {
        let time = cx.time().duration_since(MonotonicTime::EPOCH) + delay;
        if time.as_secs_f64() < self.parameters.end {
            cx.schedule_event(delay, schedulable!(Self::execute), ()).unwrap();
        } else {
            EXECUTED.fetch_add(std::mem::take(&mut self.executed), Ordering::Relaxed);
        }
    }

    #[nexosim(schedulable)]
    async fn execute(&mut self, _: (), cx: &Context<Self>) {
        self.executed += 1;
        if self.uniform() < self.parameters.remote {
            let delay = self.delay();
            let way = (self.bits() >> 62) as usize;
            // What leaves may be the last that this one knows of.
            EXECUTED.fetch_add(std::mem::take(&mut self.executed), Ordering::Relaxed);
            self.neighbours[way].send(delay).await;
        } else {
            let delay = self.delay();
            self.arrive(delay, cx).await;
        }
    }

    fn bits(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9E3779B97F4A7C15); // splitmix64
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58476D1CE4E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D049BB133111EB);
        z ^ (z >> 31)
    }

    fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn delay(&mut self) -> Duration {
        let random = -self.parameters.mean * (1.0 - self.uniform()).ln();
        Duration::from_secs_f64(self.parameters.lookahead + random).max(Duration::from_nanos(1))
    }
}

fn main() {
    let (mut lps, mut events_per_lp, mut seed, mut threads) = (8192, 1, 1, 1);
    let (mut remote, mut mean, mut lookahead, mut end) = (0.25, 1.0, 0.1, 80.0);
    let words: Vec<String> = std::env::args().skip(1).collect();
    for pair in words.chunks(2) {
        let value = pair.get(1).unwrap_or_else(|| panic!("{} needs a value", pair[0]));
        let real = || value.parse::<f64>().unwrap_or_else(|_| panic!("{} {value} is no number", pair[0]));
        match pair[0].as_str() {
            "--lps" => lps = real() as usize,
            "--events-per-lp" => events_per_lp = real() as usize,
            "--seed" => seed = real() as u64,
            "--threads" => threads = real() as usize,
            "--remote" => remote = real(),
            "--mean" => mean = real(),
            "--lookahead" => lookahead = real(),
            "--end" => end = real(),
            other => panic!("no option {other}"),
        }
    }
    let parameters = Parameters { lps, events_per_lp, remote, mean: mean - lookahead, lookahead, end };

    let width = (1..).find(|w| w * w >= lps).unwrap();
    let mailboxes: Vec<Mailbox<Lp>> = (0..lps).map(|_| Mailbox::new()).collect();
    let mut bench = SimInit::with_num_threads(threads);
    let mut models = Vec::new();
    for id in 0..lps {
        let neighbours = [id + 1, id + lps - 1, id + width, id + lps - width]
            .map(|other| {
                let mut output = Output::new();
                output.connect(Lp::arrive, mailboxes[other % lps].address());
                output
            })
            .into();
        models.push(Lp { neighbours, parameters, random: (seed << 32) + id as u64, executed: 0 });
    }
    for (model, mailbox) in models.into_iter().zip(mailboxes) {
        bench = bench.add_model(model, mailbox, "lp");
    }
    let mut simulation = bench.init(MonotonicTime::EPOCH).expect("no simulation");
    let began = Instant::now();
    simulation.run().expect("the run failed");
    let seconds = began.elapsed().as_secs_f64();
    let events = EXECUTED.load(Ordering::Relaxed);
    println!(
        "{{\"ops\":{events},\"ns_per_op\":{},\"seconds\":{seconds},\"events\":{events},\"events_per_s\":{}}}",
        seconds * 1e9 / events as f64,
        events as f64 / seconds
    );
}
