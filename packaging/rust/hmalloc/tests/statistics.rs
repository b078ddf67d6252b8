//! What hmalloc knows of a program that has it as its global allocator, and what it does when asked.
use std::fs::{self, File};
use std::path::PathBuf;
use std::sync::{mpsc, Mutex, MutexGuard};
use std::thread;

#[global_allocator]
static ALLOCATOR: hmalloc::HMalloc = hmalloc::HMalloc;

const MIB: u64 = 1 << 20;

/// Statistics are of the process: one test after the other.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

#[test]
fn every_block_is_hmallocs() {
    let _alone = alone();
    let before = hmalloc::stats();
    let large = vec![1u8; (64 * MIB) as usize];
    let small: Vec<Box<[u8; 1000]>> = (0..20_000).map(|_| Box::new([1; 1000])).collect();
    let text = "x".repeat(100);
    // These end the program where the block is another allocator's.
    unsafe {
        assert!(hmalloc::usable_size(large.as_ptr()) >= large.len());
        assert!(small.iter().all(|block| hmalloc::usable_size(block.as_ptr()) >= 1000));
        assert!(hmalloc::usable_size(text.as_ptr()) >= 100);
    }
    let held = hmalloc::stats().allocated - before.allocated;
    assert!((83 * MIB..90 * MIB).contains(&held), "{held}");
    drop((large, small));
    assert!(hmalloc::stats().allocated < before.allocated + 4 * MIB);
}

#[test]
fn threads_hand_blocks_over() {
    let _alone = alone();
    let before = hmalloc::stats();
    thread::scope(|scope| {
        for lane in 0..4u64 {
            let (sender, receiver) = mpsc::sync_channel::<Vec<u64>>(100);
            scope.spawn(move || {
                for n in 0..20_000 {
                    sender.send(vec![lane * n; 1 + n as usize % 100]).unwrap();
                }
            });
            scope.spawn(move || {
                for (n, message) in (0u64..).zip(receiver) {
                    assert_eq!(message.len(), 1 + n as usize % 100);
                    assert!(message.iter().all(|&number| number == lane * n));
                }
            });
        }
    });
    let after = hmalloc::stats();
    assert!(after.cross_thread_frees > before.cross_thread_frees);
    assert!(after.allocated < before.allocated + MIB);
}

#[test]
fn memory_goes_back_on_request() {
    let _alone = alone();
    let blocks: Vec<Box<[u8; 1000]>> = (0..64_000).map(|_| Box::new([1; 1000])).collect();
    let purged = hmalloc::stats().purged;
    drop(blocks);
    let before = hmalloc::stats();
    assert!(hmalloc::collect());
    let now = hmalloc::stats();
    assert!(now.resident < before.resident, "{} after {}", now.resident, before.resident);
    assert!(now.purged > purged + 32 * MIB, "{now:?}");
    assert!(now.resident < 32 * MIB, "{now:?}");
}

#[test]
fn an_idle_thread_has_no_heap() {
    let _alone = alone();
    let gave_its_heap = || {
        let block = Box::new(7);
        let before = hmalloc::stats().live_heaps;
        hmalloc::thread_idle();
        let after = hmalloc::stats().live_heaps;
        assert_eq!(*block, 7);
        drop(block);
        assert_eq!(vec![1; 100].len(), 100);
        after < before // unless the next test's thread came in between
    };
    assert!((0..100).any(|_| thread::spawn(gave_its_heap).join().unwrap()));
}

#[test]
fn check_counts_blocks_of_the_hardened_library() {
    let _alone = alone();
    let blocks: Vec<_> = (0..1000).map(Box::new).collect();
    let counted = hmalloc::check();
    assert_eq!(counted >= blocks.len(), cfg!(feature = "hardened"), "{counted}");
}

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name)
}

#[test]
fn statistics_are_written() {
    let _alone = alone();
    for (form, opening) in [(hmalloc::Form::Text, "hmalloc"), (hmalloc::Form::Json, "{"), (hmalloc::Form::OpenMetrics, "# ")] {
        hmalloc::write_stats(File::create(file("stats")).unwrap(), form);
        let text = fs::read_to_string(file("stats")).unwrap();
        assert!(text.starts_with(opening) && text.contains("allocated"), "{form:?}: {text}");
    }
}

#[test]
fn a_profile_names_who_allocates() {
    let _alone = alone();
    let profile = |name| {
        hmalloc::write_profile(File::create(file(name)).unwrap()).unwrap();
        fs::read(file(name)).unwrap()
    };
    let before = profile("before.pb").len();
    hmalloc::start_profile(1000).unwrap();
    let blocks: Vec<_> = (0..1000).map(|n| vec![n; 100]).collect();
    hmalloc::stop_profile();
    let with = profile("with.pb");
    assert!(with.len() > before, "{} after {before}", with.len());
    assert!(with.windows(11).any(|text| text == b"inuse_space"));
    drop(blocks);
}
