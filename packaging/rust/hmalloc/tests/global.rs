//! What blocks are like, with hmalloc as the global allocator.
use std::alloc::{alloc, alloc_zeroed, dealloc, realloc, Layout};
use std::collections::{BTreeMap, HashMap};
use std::slice;

#[global_allocator]
static ALLOCATOR: hmalloc::HMalloc = hmalloc::HMalloc;

const MIB: usize = 1 << 20;

fn layout(size: usize, alignment: usize) -> Layout {
    Layout::from_size_align(size, alignment).unwrap()
}

/// A block with a pattern that depends on its size.
unsafe fn filled(layout: Layout) -> *mut u8 {
    let block = alloc(layout);
    assert!(!block.is_null());
    for i in 0..layout.size() {
        block.add(i).write((i * 7 + layout.size()) as u8);
    }
    block
}

unsafe fn has_pattern(block: *const u8, size: usize, first: usize) -> bool {
    (0..first).all(|i| block.add(i).read() == (i * 7 + size) as u8)
}

#[test]
fn any_alignment_up_to_2_mib() {
    let sizes = [1, 8, 15, 16, 17, 100, 1000, 4097, 32 << 10, 100_000, 3 * MIB];
    for alignment in (0..=21).map(|bit| 1 << bit) {
        for size in sizes {
            let of = layout(size, alignment);
            unsafe {
                let block = filled(of);
                assert_eq!(block as usize % alignment, 0, "{of:?}");
                assert!(hmalloc::usable_size(block) >= size);
                let more = realloc(block, of, size * 2);
                assert_eq!(more as usize % alignment, 0, "{of:?}");
                assert!(has_pattern(more, size, size), "{of:?}");
                dealloc(more, layout(size * 2, alignment));
            }
        }
    }
}

#[test]
fn realloc_keeps_what_is_in_the_block() {
    let sizes = [1, 16, 65, 100, 112, 113, 1000, 1025, 5000, 20_000, 32 << 10, 40_000, 200_000, 1_500_000, 5_000_000];
    for alignment in [1, 16, 64, 4096] {
        for old in sizes {
            for new in sizes {
                unsafe {
                    let block = realloc(filled(layout(old, alignment)), layout(old, alignment), new);
                    assert!(has_pattern(block, old, old.min(new)), "{old} to {new}, aligned to {alignment}");
                    dealloc(block, layout(new, alignment));
                }
            }
        }
    }
}

/// Or its free by size would put it among blocks of another class.
#[test]
fn a_resized_block_is_as_large_as_a_fresh_one() {
    for old in (16..2000).step_by(48) {
        for new in (16..2000).step_by(48) {
            unsafe {
                let resized = realloc(alloc(layout(old, 8)), layout(old, 8), new);
                let fresh = alloc(layout(new, 8));
                assert_eq!(hmalloc::usable_size(resized), hmalloc::usable_size(fresh), "{old} to {new}");
                dealloc(resized, layout(new, 8));
                dealloc(fresh, layout(new, 8));
            }
        }
    }
}

#[test]
fn zeroed_is_zero_where_something_was() {
    for alignment in [1, 16, 128, 8192] {
        for size in [1, 24, 100, 1000, 10_000, 32 << 10, 50_000, 700_000, 3 * MIB] {
            let of = layout(size, alignment);
            unsafe {
                let used: Vec<_> = (0..8).map(|_| filled(of)).collect();
                used.into_iter().for_each(|block| dealloc(block, of));
                let zeroed: Vec<_> = (0..8).map(|_| alloc_zeroed(of)).collect();
                for block in zeroed {
                    assert!(slice::from_raw_parts(block, size).iter().all(|&byte| byte == 0), "{of:?}");
                    dealloc(block, of);
                }
            }
        }
    }
}

#[test]
fn no_memory_is_null() {
    let too_large = layout(1 << 60, 8);
    unsafe {
        assert!(alloc(too_large).is_null());
        assert!(alloc_zeroed(too_large).is_null());
        let of = layout(100, 8);
        let block = filled(of);
        assert!(realloc(block, of, 1 << 60).is_null());
        assert!(has_pattern(block, 100, 100));
        dealloc(block, of);
    }
    assert!(Vec::<u8>::new().try_reserve(1 << 60).is_err());
}

#[test]
fn collections() {
    let mut counts = HashMap::new();
    let mut places = BTreeMap::new();
    for n in 0..100_000 {
        *counts.entry(format!("key {}", n % 1000)).or_insert(0) += 1;
        places.insert(n * 7919 % 100_000, n.to_string());
    }
    assert_eq!(counts.len(), 1000);
    assert!(counts.values().all(|&count| count == 100));
    assert!(places.iter().all(|(place, n)| n.parse::<usize>().unwrap() * 7919 % 100_000 == *place));
    let mut text = String::new();
    (0..10_000).for_each(|_| text.push_str("0123456789"));
    text.shrink_to_fit();
    text.truncate(15);
    text.shrink_to_fit();
    assert_eq!(text, "012345678901234");
}
