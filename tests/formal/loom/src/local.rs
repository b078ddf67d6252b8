//! A local block freed by another thread (src/local/local_heap.cc): its byte says so, and then a flag of its unit.  The
//! owner clears the flag before it probes at the bytes, so a free that it comes too early for sets the flag again.
use crate::{order, weakened, Scenario};
use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicU8, Ordering::*};
use loom::sync::Arc;
use loom::thread;

const LIVE: u8 = 5;
const REMOTE_FREED: u8 = 254;

struct Unit {
    size: [AtomicU8; 2],
    remote: AtomicU8,
    payload: [UnsafeCell<u32>; 2],
}
unsafe impl Sync for Unit {}

impl Unit {
    fn free(&self, block: usize) {
        self.payload[block].with_mut(|p| unsafe { *p += 1 });
        if weakened("flag before byte") {
            self.remote.swap(1, AcqRel);
        }
        self.size[block].store(REMOTE_FREED, order("remote free", Release));
        if weakened("flag stored") {
            self.remote.store(1, Release);
        } else if !weakened("flag before byte") {
            self.remote.swap(1, order("raise flag", AcqRel));
        }
    }
    fn clear(&self) {
        if weakened("flag cleared by a store") {
            self.remote.store(0, Release);
        } else {
            self.remote.swap(0, order("clear flag", AcqRel));
        }
    }
    /// The owner counts, and uses what it found free.
    fn count(&self) -> usize {
        if self.remote.load(Relaxed) == 0 {
            return 0;
        }
        if !weakened("flag cleared late") {
            self.clear();
        }
        let mut freed = 0;
        for block in 0..2 {
            if self.size[block].load(order("remote sweep", Acquire)) == REMOTE_FREED {
                self.size[block].store(0, Relaxed);
                self.payload[block].with_mut(|p| unsafe { *p = 0 });
                freed += 1;
            }
        }
        if weakened("flag cleared late") {
            self.clear();
        }
        freed
    }
}

/// Two threads free while the owner counts; what it counts then and later is both.
fn remote_frees() {
    let unit = Arc::new(Unit {
        size: [AtomicU8::new(LIVE), AtomicU8::new(LIVE)],
        remote: AtomicU8::new(0),
        payload: [UnsafeCell::new(0), UnsafeCell::new(0)],
    });
    let others: Vec<_> = (0..2).map(|b| { let unit = unit.clone(); thread::spawn(move || unit.free(b)) }).collect();
    let early = unit.count();
    others.into_iter().for_each(|t| t.join().unwrap());
    assert_eq!(early + unit.count(), 2, "a free was forgotten");
}

pub const SCENARIOS: &[Scenario] = &[Scenario {
    name: "local_remote_frees",
    run: remote_frees,
    must_fail: &["remote free", "remote sweep", "raise flag", "clear flag", "flag before byte", "flag stored", "flag cleared late",
                 "flag cleared by a store"],
}];
