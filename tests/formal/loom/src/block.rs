//! The state byte of a block (src/core/block_state.h): a release store of FREE gives the block back, an acquire load
//! by the superblock's holder takes it.  The store is the last access to block and superblock.
use crate::{order, weakened, Scenario};
use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicU8, Ordering::*};
use loom::sync::Arc;
use loom::thread;

const FREE: u8 = 0;
const TAKEN: u8 = 1;

struct Superblock {
    state: [AtomicU8; 2],
    payload: [UnsafeCell<u32>; 2], // what the program does in the block
    descriptor: UnsafeCell<u32>,   // class and owner: read by a free, rewritten when the superblock gets a new class
}
unsafe impl Sync for Superblock {}

impl Superblock {
    fn new() -> Arc<Superblock> {
        Arc::new(Superblock {
            state: [AtomicU8::new(TAKEN), AtomicU8::new(TAKEN)],
            payload: [UnsafeCell::new(0), UnsafeCell::new(0)],
            descriptor: UnsafeCell::new(0),
        })
    }
    /// The program's last use of the block, and its free, by any thread.
    fn free(&self, block: usize) {
        self.payload[block].with_mut(|p| unsafe { *p += 1 });
        self.descriptor.with(|d| unsafe { *d });
        self.state[block].store(FREE, order("give back", Release));
        if weakened("touch after give back") {
            self.descriptor.with(|d| unsafe { *d });
        }
    }
    fn is_free(&self, block: usize) -> bool {
        self.state[block].load(order("sweep", Acquire)) == FREE
    }
}

/// The owner sweeps while another thread frees, and hands the block out again.
fn hand_over() {
    let sb = Superblock::new();
    let other = { let sb = sb.clone(); thread::spawn(move || sb.free(0)) };
    if sb.is_free(0) {
        sb.state[0].store(TAKEN, Relaxed);
        sb.payload[0].with_mut(|p| unsafe { *p = 7 });
    }
    other.join().unwrap();
}

/// Two threads free the last two blocks; the owner sees both FREE and gives the superblock another class.
fn reclaim() {
    let sb = Superblock::new();
    let others: Vec<_> = (0..2).map(|b| { let sb = sb.clone(); thread::spawn(move || sb.free(b)) }).collect();
    if sb.is_free(0) && sb.is_free(1) {
        sb.descriptor.with_mut(|d| unsafe { *d = 9 });
    }
    others.into_iter().for_each(|t| t.join().unwrap());
}

/// A free block is taken, handed to another thread and given back by it; the byte has one writer at a time, so no
/// store of the owner may come to lie behind the other's.
fn retake() {
    let sb = Superblock::new();
    sb.state[0].store(FREE, Relaxed);
    let pointer = Arc::new(AtomicU8::new(0)); // the program's own hand-over
    let other = {
        let (sb, pointer) = (sb.clone(), pointer.clone());
        thread::spawn(move || {
            let got = pointer.load(Acquire) == 1;
            if got {
                sb.free(0);
            }
            got
        })
    };
    if !weakened("taken after it was handed out") {
        sb.state[0].store(TAKEN, Relaxed);
    }
    pointer.store(1, Release);
    if weakened("taken after it was handed out") {
        sb.state[0].store(TAKEN, Relaxed);
    }
    let freed = other.join().unwrap();
    assert_eq!(sb.is_free(0), freed, "a free was lost");
}

pub const SCENARIOS: &[Scenario] = &[
    Scenario { name: "block_hand_over", run: hand_over, must_fail: &["give back", "sweep"] },
    Scenario { name: "block_retake", run: retake, must_fail: &["taken after it was handed out"] },
    Scenario { name: "block_reclaim", run: reclaim, must_fail: &["give back", "sweep", "touch after give back"] },
];
