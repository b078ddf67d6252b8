//! The lock (src/base/lock.h) and what is handed over under it: a dead heap (src/threads/registry.cc), and with it every row
//! of the table of hand-overs that says "under the same lock".
use crate::{order, weakened, Scenario};
use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicU32, Ordering::*};
use loom::sync::Arc;
use loom::thread;

struct Registry {
    lock: AtomicU32,
    dead: UnsafeCell<bool>, // the list, of one heap
    heap: UnsafeCell<u32>,
}
unsafe impl Sync for Registry {}

impl Registry {
    /// None: somebody has it.  Who waits for it does no more than ask again.
    fn locked<R>(&self, me: u32, what: impl FnOnce() -> R) -> Option<R> {
        if weakened("lock by load and store") {
            if self.lock.load(Acquire) != 0 {
                return None;
            }
            self.lock.store(me, Relaxed);
        } else if self.lock.compare_exchange(0, me, order("lock", Acquire), Relaxed).is_err() {
            return None;
        }
        let result = what();
        self.lock.swap(0, order("unlock", Release));
        Some(result)
    }
    fn publish(&self, me: u32) {
        self.locked(me, || self.dead.with_mut(|d| unsafe { *d = true }));
    }
    /// The thread's end: its last work in the heap, then the heap is published.
    fn detach(&self) {
        if weakened("published first") {
            self.publish(1);
        }
        self.heap.with_mut(|h| unsafe { *h += 1 });
        if !weakened("published first") {
            self.publish(1);
        }
    }
    fn attach(&self, me: u32) {
        if self.locked(me, || self.dead.with_mut(|d| unsafe { std::mem::replace(&mut *d, false) })) == Some(true) {
            self.heap.with_mut(|h| unsafe { *h += 1 });
        }
    }
}

/// One thread ends, two want its heap: one of them gets it, as the ended one left it.
fn inherit() {
    let registry = Arc::new(Registry { lock: AtomicU32::new(0), dead: UnsafeCell::new(false), heap: UnsafeCell::new(0) });
    let ends = { let r = registry.clone(); thread::spawn(move || r.detach()) };
    let other = { let r = registry.clone(); thread::spawn(move || r.attach(2)) };
    registry.attach(3);
    ends.join().unwrap();
    other.join().unwrap();
}

pub const SCENARIOS: &[Scenario] = &[Scenario {
    name: "heap_inherit",
    run: inherit,
    must_fail: &["lock", "unlock", "lock by load and store", "published first"],
}];
