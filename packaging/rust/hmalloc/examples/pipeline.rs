//! A log in a pipeline: a reader makes a message of every line, workers parse it, a collector keeps the totals. No message is
//! freed by the thread that allocated it.
//!
//!     cargo run --release --example pipeline [LINES [WORKERS]]                         on hmalloc
//!     cargo run --release --example pipeline --features system [LINES [WORKERS]]       on the system's allocator
use std::collections::HashMap;
use std::str::FromStr;
use std::sync::mpsc::{sync_channel, Receiver, SyncSender};
use std::time::Instant;
use std::{env, process, thread};

#[cfg(not(feature = "system"))]
#[global_allocator]
static ALLOCATOR: hmalloc::HMalloc = hmalloc::HMalloc;

/// Messages in transit to another thread: few channels' worth of synchronisation for many messages.
const BATCH: u64 = 512;
const BATCHES_IN_TRANSIT: usize = 16;

struct Request {
    client: String,
    path: String,
    bytes: u64,
}

fn line(n: u64) -> String {
    let random = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (n >> 7);
    format!(
        "10.0.{}.{} GET /item/{}/view/{} {}",
        (random >> 16) & 255,
        (random >> 24) & 255,
        (random >> 32) & 1023,
        (random >> 42) & 7,
        (random >> 45) & 0xffff
    )
}

fn parse(line: &str) -> Request {
    let mut words = line.split(' ');
    let mut word = || words.next().expect("a line has four words");
    let client = word().to_string();
    let (_method, path, bytes) = (word(), word().to_string(), word());
    Request { client, path, bytes: bytes.parse().expect("a number") }
}

fn read(lines: u64, lanes: &[SyncSender<Vec<String>>]) {
    let mut next = lanes.iter().cycle();
    for from in (0..lines).step_by(BATCH as usize) {
        let batch = (from..lines.min(from + BATCH)).map(line).collect();
        next.next().expect("a worker").send(batch).expect("the worker runs");
    }
}

fn work(from: Receiver<Vec<String>>, to: SyncSender<Vec<Request>>) {
    for lines in from {
        let requests = lines.into_iter().map(|line| parse(&line)).collect();
        to.send(requests).expect("the collector runs");
    }
}

/// Bytes by path, and the messages that had them.
fn collect(from: Receiver<Vec<Request>>) -> (u64, u64, usize) {
    let (mut messages, mut total, mut bytes_of) = (0, 0, HashMap::new());
    for request in from.into_iter().flatten() {
        messages += 1;
        total += request.bytes + request.client.len() as u64;
        *bytes_of.entry(request.path).or_insert(0) += request.bytes;
    }
    (messages, total, bytes_of.len())
}

fn number<T: FromStr + PartialOrd + From<u8>>(text: Option<String>, otherwise: T) -> T {
    match text.map(|text| text.parse::<T>()) {
        None => otherwise,
        Some(Ok(number)) if number >= T::from(1) => number,
        Some(_) => {
            eprintln!("pipeline: [LINES [WORKERS]] are whole numbers from 1");
            process::exit(2)
        }
    }
}

fn main() {
    let mut arguments = env::args().skip(1);
    let lines: u64 = number(arguments.next(), 4_000_000);
    let workers = number(arguments.next(), thread::available_parallelism().map_or(1, usize::from));
    let start = Instant::now();
    let (messages, bytes, paths) = thread::scope(|scope| {
        let (to_collector, requests) = sync_channel(BATCHES_IN_TRANSIT);
        let lanes: Vec<_> = (0..workers)
            .map(|_| {
                let (lane, lines) = sync_channel(BATCHES_IN_TRANSIT);
                let to_collector = to_collector.clone();
                scope.spawn(move || work(lines, to_collector));
                lane
            })
            .collect();
        drop(to_collector);
        scope.spawn(move || read(lines, &lanes));
        collect(requests)
    });
    let seconds = start.elapsed().as_secs_f64();
    let allocator = if cfg!(feature = "system") { "the system's allocator" } else { "hmalloc" };
    println!("{messages} messages, {paths} paths, {bytes} bytes");
    println!("{:.0} messages a second on {allocator}", messages as f64 / seconds);
}
