//! The lock-free queue of baselines/vvmalloc/ms_queue.h.  There one method reads a link for all purposes, and one
//! swaps it; here each use has a name and can be weakened by itself.
use crate::{order, Scenario};
use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicU64, AtomicUsize, Ordering::*};
use loom::sync::Arc;
use loom::thread;

const NODES: usize = 3; // numbered from 1; node 1 is the first dummy

fn node(word: u64) -> usize { (word & 0xff) as usize }
fn changed(word: u64, to: usize) -> u64 { ((word >> 8) + 1) << 8 | to as u64 }

struct Queue {
    head: AtomicU64,
    tail: AtomicU64,
    pool: AtomicU64,
    next: [AtomicU64; NODES + 1],
    arena: [AtomicUsize; NODES + 1],
    content: [UnsafeCell<u32>; 4], // of the arenas
    turn: AtomicUsize,
}
unsafe impl Sync for Queue {}

impl Queue {
    fn new() -> Arc<Queue> {
        Arc::new(Queue {
            head: AtomicU64::new(1),
            tail: AtomicU64::new(1),
            pool: AtomicU64::new(2),
            next: [0, 0, 3, 0].map(AtomicU64::new),
            arena: [0, 0, 0, 0].map(AtomicUsize::new),
            content: [0, 0, 0, 0].map(UnsafeCell::new),
            turn: AtomicUsize::new(0),
        })
    }
    /// Before each access.  loom probes for a conflict with the last access to a word only, and a thread's own read
    /// before its swap hides those of others; a common word makes any two accesses conflict.  Relaxed: no order comes
    /// of it.
    fn step(&self) {
        self.turn.fetch_add(1, Relaxed);
    }
    fn read(&self, word: &AtomicU64, site: &str) -> u64 {
        self.step();
        word.load(order(site, Acquire))
    }
    fn look(&self, word: &AtomicU64) -> u64 {
        self.step();
        word.load(Relaxed)
    }
    fn swap(&self, word: &AtomicU64, site: &str, seen: u64, to: usize) -> bool {
        self.step();
        word.compare_exchange(seen, changed(seen, to), order(site, Release), Relaxed).is_ok()
    }
    fn next(&self, n: usize) -> &AtomicU64 {
        assert!(n != 0, "there is no node 0");
        &self.next[n]
    }
    fn set(&self, n: usize, to: usize) {
        let own = self.next(n).load(Relaxed);
        self.step();
        self.next(n).store(own & !0xff | to as u64, order("set", Release));
    }
    fn new_node(&self) -> usize {
        loop {
            let top = self.read(&self.pool, "pool read");
            if node(top) == 0 {
                return 0;
            }
            let below = node(self.look(self.next(node(top))));
            self.step();
            if self.pool.compare_exchange(top, changed(top, below), Relaxed, Relaxed).is_ok() {
                self.set(node(top), 0);
                return node(top);
            }
            thread::yield_now();
        }
    }
    fn free_node(&self, n: usize) {
        loop {
            let top = self.look(&self.pool);
            self.set(n, node(top));
            if self.swap(&self.pool, "pool swap", top, n) {
                return;
            }
            thread::yield_now();
        }
    }
    /// The giver has written the arena.
    fn enqueue(&self, arena: usize) {
        self.content[arena].with_mut(|c| unsafe { *c += 1 });
        let fresh = self.new_node();
        assert!(fresh != 0, "scenarios are small enough");
        self.arena[fresh].store(arena, Relaxed);
        loop {
            let tail = self.read(&self.tail, "tail read");
            let next = self.read(self.next(node(tail)), "next read");
            if self.look(&self.tail) == tail {
                if node(next) != 0 {
                    self.swap(&self.tail, "tail swap", tail, node(next));
                } else if self.swap(self.next(node(tail)), "link swap", next, fresh) {
                    self.swap(&self.tail, "tail swap", tail, fresh);
                    return;
                }
            }
            thread::yield_now();
        }
    }
    /// The taker writes the arena.
    fn dequeue(&self) -> Option<usize> {
        loop {
            let head = self.read(&self.head, "head read");
            let tail = self.read(&self.tail, "tail read");
            let next = self.read(self.next(node(head)), "next read");
            if self.look(&self.head) == head {
                if node(head) == node(tail) {
                    if node(next) == 0 {
                        return None;
                    }
                    self.swap(&self.tail, "tail swap", tail, node(next));
                } else {
                    assert!(node(next) != 0, "there is no node 0");
                    let arena = self.arena[node(next)].load(Relaxed);
                    if self.swap(&self.head, "head swap", head, node(next)) {
                        self.content[arena].with_mut(|c| unsafe { *c += 1 });
                        self.free_node(node(head));
                        return Some(arena);
                    }
                }
            }
            thread::yield_now();
        }
    }
    /// Everything given has been taken, or is still here, once.
    fn check(&self, taken: Vec<Option<usize>>, given: usize) {
        let mut all: Vec<usize> = taken.into_iter().flatten().collect();
        while let Some(arena) = self.dequeue() {
            all.push(arena);
            assert!(all.len() <= given, "taken twice");
        }
        all.sort();
        assert_eq!(all, (1..=given).collect::<Vec<_>>(), "lost");
    }
}

fn spawn(queue: &Arc<Queue>, what: fn(&Queue) -> Option<usize>) -> thread::JoinHandle<Option<usize>> {
    let queue = queue.clone();
    thread::spawn(move || what(&queue))
}

/// One gives, one takes.
fn hand_over() {
    let queue = Queue::new();
    let giver = spawn(&queue, |q| { q.enqueue(1); None });
    let taken = queue.dequeue();
    giver.join().unwrap();
    queue.check(vec![taken], 1);
}

/// Both add behind the same last node.
fn two_givers() {
    let queue = Queue::new();
    let other = spawn(&queue, |q| { q.enqueue(1); None });
    queue.enqueue(2);
    other.join().unwrap();
    queue.check(vec![], 2);
}

/// The last node that the one has found is freed by the other.
fn late_giver() {
    let queue = Queue::new();
    let late = spawn(&queue, |q| { q.enqueue(1); None });
    queue.enqueue(2);
    let taken = queue.dequeue();
    late.join().unwrap();
    queue.check(vec![taken], 2);
}

/// The second taker meets the head of the first, and must not meet an older tail.
fn two_takers() {
    let queue = Queue::new();
    let giver = spawn(&queue, |q| { q.enqueue(1); None });
    let taker = spawn(&queue, Queue::dequeue);
    let taken = queue.dequeue();
    giver.join().unwrap();
    let other = taker.join().unwrap();
    queue.check(vec![taken, other], 1);
}

/// A node is freed by the one and taken from the pool by the other.
fn pool() {
    let queue = Queue::new();
    queue.enqueue(1);
    let taker = spawn(&queue, Queue::dequeue);
    queue.enqueue(2);
    let taken = if node(queue.look(&queue.pool)) != 0 { queue.enqueue(3); 3 } else { 2 };
    let other = taker.join().unwrap();
    queue.check(vec![other], taken);
}

/// Two threads need the same chunk of nodes; both go on with the one that was published.
fn chunk() {
    struct Directory {
        published: AtomicUsize, // 0: none
        nodes: [UnsafeCell<u32>; 3],
    }
    unsafe impl Sync for Directory {}
    fn first_use(d: &Directory, mine: usize) {
        d.nodes[mine].with_mut(|n| unsafe { *n = 1 }); // mapped, all zero
        let _ = d.published.compare_exchange(0, mine, order("chunk publish", Release), Relaxed);
        let chunk = d.published.load(order("chunk read", Acquire));
        assert_eq!(d.nodes[chunk].with(|n| unsafe { *n }), 1);
    }
    let directory = Arc::new(Directory { published: AtomicUsize::new(0), nodes: [0, 0, 0].map(UnsafeCell::new) });
    let other = { let d = directory.clone(); thread::spawn(move || first_use(&d, 1)) };
    first_use(&directory, 2);
    other.join().unwrap();
}

const LAST_NODE: &[&str] = &["next read", "link swap", "tail read", "tail swap"];

pub const SCENARIOS: &[Scenario] = &[
    Scenario { name: "queue_hand_over", run: hand_over, must_fail: LAST_NODE },
    Scenario { name: "queue_two_givers", run: two_givers, must_fail: LAST_NODE },
    Scenario { name: "queue_late_giver", run: late_giver, must_fail: &["next read", "set", "pool read", "pool swap"] },
    Scenario { name: "queue_two_takers", run: two_takers, must_fail: &["head read", "head swap"] },
    Scenario { name: "queue_pool", run: pool, must_fail: &["pool read", "pool swap"] },
    Scenario { name: "queue_chunk", run: chunk, must_fail: &["chunk publish", "chunk read"] },
];
