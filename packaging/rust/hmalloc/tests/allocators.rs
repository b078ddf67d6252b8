//! Local, Shared and HMalloc as allocators of collections, in a program with the system's global allocator.
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{ptr, thread};

use allocator_api2::alloc::Allocator;
use allocator_api2::boxed::Box;
use allocator_api2::vec::Vec;
use hmalloc::{HMalloc, Heap, Local, Shared};

/// Counts, so that a block that is not hmalloc's is seen.
struct Counted;
static SYSTEM_BYTES: AtomicUsize = AtomicUsize::new(0);

unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        SYSTEM_BYTES.fetch_add(layout.size(), Ordering::Relaxed);
        System.alloc(layout)
    }
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        System.dealloc(block, layout);
    }
}

#[global_allocator]
static GLOBAL: Counted = Counted;

#[repr(align(256))]
struct Aligned(u8);

fn layout(size: usize, alignment: usize) -> Layout {
    Layout::from_size_align(size, alignment).unwrap()
}

fn serves<A: Allocator + Copy>(allocator: A) {
    let before = SYSTEM_BYTES.load(Ordering::Relaxed);
    let mut numbers = Vec::new_in(allocator);
    numbers.extend(0..1_000_000u64);
    // Ends the program where the block is another allocator's.
    assert!(unsafe { hmalloc::usable_size(numbers.as_ptr().cast()) } >= 8_000_000);
    assert!(hmalloc::stats().allocated >= 8_000_000);
    assert!((0u64..).zip(&numbers).all(|(n, &number)| n == number));
    for length in [300_000, 3000, 1000, 100, 7, 1] {
        numbers.truncate(length);
        numbers.shrink_to_fit();
        assert_eq!(numbers.capacity(), length);
        assert!((0u64..length as u64).eq(numbers.iter().copied()));
    }
    assert!(SYSTEM_BYTES.load(Ordering::Relaxed) < before + 1_000_000);

    let boxes: std::vec::Vec<_> = (0..100).map(|n| Box::new_in(Aligned(n), allocator)).collect();
    for (n, aligned) in (0..).zip(&boxes) {
        assert_eq!((aligned.0, ptr::addr_of!(**aligned) as usize % 256), (n, 0));
    }
    let nothing = Box::new_in((), allocator);
    assert_eq!(*nothing, ());
    let mut units = Vec::new_in(allocator);
    units.extend([(); 100]);
    assert_eq!(units.len(), 100);
}

fn resizes<A: Allocator>(allocator: A) {
    let layouts = [
        (0, 1),
        (0, 64),
        (1, 1),
        (100, 4),
        (112, 16),
        (70, 8),
        (5000, 128),
        (112, 64),
        (224, 128),
        (100_000, 4),
        (40_000, 4096),
    ];
    for (old_size, old_alignment) in layouts {
        for (size, alignment) in layouts {
            let (old, new) = (layout(old_size, old_alignment), layout(size, alignment));
            unsafe {
                // Blocks of the new size's class, so that the next one is not the first of a page, which is aligned by chance.
                let before = layout(size.max(1), 1);
                let held: std::vec::Vec<_> = (0..7).map(|_| allocator.allocate(before).unwrap()).collect();
                let mut block = allocator.allocate_zeroed(old).unwrap();
                assert_eq!(block.len(), old_size);
                assert!(block.as_ref().iter().all(|&byte| byte == 0));
                block.as_mut().fill(7);
                let resized = if size >= old_size {
                    allocator.grow_zeroed(block.cast(), old, new)
                } else {
                    allocator.shrink(block.cast(), old, new)
                };
                let bytes = resized.unwrap();
                assert_eq!((bytes.len(), bytes.cast::<u8>().as_ptr() as usize % alignment), (size, 0));
                let content = |i| if i < old_size { 7 } else { 0 };
                assert!(bytes.as_ref().iter().enumerate().all(|(i, &byte)| byte == content(i)), "{old:?} {new:?}");
                // The free by size has put it among blocks of its own class.
                allocator.deallocate(bytes.cast(), new);
                let again = allocator.allocate(new).unwrap();
                assert!(size == 0 || hmalloc::usable_size(again.cast().as_ptr()) >= size);
                allocator.deallocate(again.cast(), new);
                for each in held {
                    allocator.deallocate(each.cast(), before);
                }
            }
        }
    }
    assert!(allocator.allocate(layout(1 << 60, 8)).is_err());
}

#[test]
fn general_blocks() {
    serves(HMalloc);
    resizes(HMalloc);
}

#[test]
fn local_blocks() {
    serves(Local::new());
    resizes(Local::new());
    let numbers = {
        let mut numbers = Vec::new_in(Local::new());
        numbers.extend(0..1000);
        numbers
    };
    thread::scope(|scope| {
        scope.spawn(|| assert_eq!(numbers.iter().sum::<i32>(), 499_500));
    });
}

#[test]
fn blocks_of_a_heap() {
    let heap = Heap::new().unwrap();
    serves(&heap);
    resizes(&heap);
    assert_eq!(heap.stats().blocks, 0);
    let mut lists: std::vec::Vec<_> = (0..4).map(|_| Vec::new_in(&heap)).collect();
    thread::scope(|scope| {
        for list in &mut lists {
            scope.spawn(move || list.extend(0..100_000u64));
        }
    });
    assert_eq!(heap.stats().blocks, 4);
    assert!(heap.stats().allocated >= 3_200_000 && heap.stats().held >= heap.stats().allocated);
    assert!(lists.iter().all(|list| list.iter().copied().eq(0..100_000)));
    std::mem::forget(lists); // the heap knows of their blocks
    let before = hmalloc::stats().allocated;
    drop(heap);
    assert!(hmalloc::stats().allocated + 3_200_000 <= before);

    let mut owner = Vec::new_in(Heap::new().unwrap());
    owner.extend(0..1000);
    let moved = thread::spawn(move || owner.iter().sum::<i32>());
    assert_eq!(moved.join().unwrap(), 499_500);
}

#[test]
fn shared_blocks() {
    serves(Shared);
    resizes(Shared);
    let messages: std::vec::Vec<_> = (0u8..200).map(|n| Box::new_in([n; 24], Shared)).collect();
    let mut lines: std::vec::Vec<_> = messages.iter().map(|message| message.as_ptr() as usize / 64).collect();
    lines.sort_unstable();
    lines.dedup();
    assert_eq!(lines.len(), 200);
    assert!(messages.iter().all(|message| message.as_ptr() as usize % 64 == 0));
    thread::spawn(move || {
        for (n, message) in (0u8..).zip(messages) {
            assert_eq!(*message, [n; 24]);
        }
    })
    .join()
    .unwrap();
}
