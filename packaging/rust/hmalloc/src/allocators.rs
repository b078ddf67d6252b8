//! The allocators for collections that name theirs.
use std::alloc::{GlobalAlloc, Layout};
use std::marker::PhantomData;
use std::mem::size_of;
use std::ptr::{self, NonNull};

use allocator_api2::alloc::{AllocError, Allocator};

use crate::{sys, HMalloc, HeapStats, ALIGNMENT};

/// Whole cache lines: a shared block has this alignment.
const LINE: usize = 64;

/// The block as the trait has it. Not more than was asked for, since blocks are freed by the size that was asked for.
fn found(block: *mut u8, size: usize) -> Result<NonNull<[u8]>, AllocError> {
    NonNull::new(ptr::slice_from_raw_parts_mut(block, size)).ok_or(AllocError)
}

/// What a layout without a byte gets: no block.
fn empty(layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
    found(layout.align() as *mut u8, 0)
}

// SAFETY: of all three: a block is valid until it is freed, however its allocator is copied or moved; they have no state.
unsafe impl Allocator for HMalloc {
    #[inline]
    fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        match layout.size() {
            0 => empty(layout),
            size => found(unsafe { self.alloc(layout) }, size),
        }
    }

    #[inline]
    fn allocate_zeroed(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        match layout.size() {
            0 => empty(layout),
            size => found(unsafe { self.alloc_zeroed(layout) }, size),
        }
    }

    #[inline]
    unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
        if layout.size() > 0 {
            unsafe { self.dealloc(block.as_ptr(), layout) }
        }
    }

    #[inline]
    unsafe fn grow(&self, block: NonNull<u8>, old: Layout, new: Layout) -> Result<NonNull<[u8]>, AllocError> {
        unsafe { resize(self, block, old, new) }
    }

    #[inline]
    unsafe fn shrink(&self, block: NonNull<u8>, old: Layout, new: Layout) -> Result<NonNull<[u8]>, AllocError> {
        unsafe { resize(self, block, old, new) }
    }
}

/// For collections that live and die in one thread: `Vec<Event, Local>`. A block is freed into this thread's cache, which has
/// it for the next request.
///
/// It is not `Send`, so that a collection stays where its blocks are cheapest; for any other thread is [`HMalloc`], or
/// [`Shared`]. Others may look at the collection.
///
/// ```
/// use allocator_api2::vec::Vec;
/// use hmalloc::Local;
///
/// let mut events = Vec::new_in(Local::new());
/// events.extend(0..100);
/// std::thread::scope(|scope| {
///     scope.spawn(|| assert_eq!(events.iter().sum::<i32>(), 4950));
/// });
/// ```
///
/// ```compile_fail,E0277
/// let events = allocator_api2::vec::Vec::<u8, _>::new_in(hmalloc::Local::new());
/// std::thread::spawn(move || drop(events));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Local {
    of_one_thread: PhantomData<*mut ()>,
}

// SAFETY: it has no state. Were another thread to allocate by a reference, it would get a block as good as any.
unsafe impl Sync for Local {}

impl Local {
    /// The allocator of the calling thread's local blocks.
    pub const fn new() -> Self {
        Local { of_one_thread: PhantomData }
    }
}

unsafe impl Allocator for Local {
    #[inline]
    fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        if layout.size() == 0 || layout.align() > ALIGNMENT {
            return HMalloc.allocate(layout);
        }
        found(unsafe { sys::hm_local_alloc(layout.size()) }.cast(), layout.size())
    }

    #[inline]
    unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
        if layout.size() == 0 || layout.align() > ALIGNMENT {
            return unsafe { HMalloc.deallocate(block, layout) };
        }
        unsafe { sys::hm_local_free_sized(block.as_ptr().cast(), layout.size()) }
    }

    #[inline]
    unsafe fn grow(&self, block: NonNull<u8>, old: Layout, new: Layout) -> Result<NonNull<[u8]>, AllocError> {
        unsafe { resize(self, block, old, new) }
    }

    #[inline]
    unsafe fn shrink(&self, block: NonNull<u8>, old: Layout, new: Layout) -> Result<NonNull<[u8]>, AllocError> {
        unsafe { resize(self, block, old, new) }
    }
}

/// For messages, which other threads free: `Box<Message, Shared>`. A block fills whole lines of 64 bytes, so no two threads
/// that work on two blocks wait for each other.
///
/// ```
/// use allocator_api2::boxed::Box;
/// use hmalloc::Shared;
///
/// let message = Box::new_in([1u8; 40], Shared);
/// assert_eq!(message.as_ptr() as usize % 64, 0);
/// std::thread::spawn(move || drop(message)).join().unwrap();
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shared;

unsafe impl Allocator for Shared {
    #[inline]
    fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        if layout.size() == 0 || layout.align() > LINE {
            return HMalloc.allocate(layout);
        }
        found(unsafe { sys::hm_shared_alloc(layout.size()) }.cast(), layout.size())
    }

    #[inline]
    unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
        if layout.size() == 0 || layout.align() > LINE {
            return unsafe { HMalloc.deallocate(block, layout) };
        }
        unsafe { sys::hm_shared_free_sized(block.as_ptr().cast(), layout.size()) }
    }
}

/// Another size for a block of `allocator`, perhaps another alignment: in place where that can be.
///
/// # Safety
/// As `Allocator::grow` or `shrink`. Local and general blocks that need no alignment are resized by the same function.
#[inline]
unsafe fn resize(
    allocator: &impl Allocator,
    block: NonNull<u8>,
    old: Layout,
    new: Layout,
) -> Result<NonNull<[u8]>, AllocError> {
    if old.size() > 0 && new.size() > 0 && old.align().max(new.align()) <= ALIGNMENT {
        return found(unsafe { HMalloc.realloc(block.as_ptr(), old, new.size()) }, new.size());
    }
    unsafe { move_block(allocator, block, old, new) }
}

unsafe fn move_block(
    allocator: &impl Allocator,
    block: NonNull<u8>,
    old: Layout,
    new: Layout,
) -> Result<NonNull<[u8]>, AllocError> {
    let fresh = allocator.allocate(new)?;
    unsafe {
        ptr::copy_nonoverlapping(block.as_ptr(), fresh.as_ptr().cast(), old.size().min(new.size()));
        allocator.deallocate(block, old);
    }
    Ok(fresh)
}

/// Blocks of one purpose, apart from all others, which are freed all at once when it is dropped: `Vec<Node, &Heap>`. Any
/// thread allocates from it, one at a time.
///
/// A collection borrows it, and so does not outlive it; or has it, and is then the only one.
///
/// ```
/// use allocator_api2::vec::Vec;
/// use hmalloc::Heap;
///
/// let heap = Heap::new().expect("no memory");
/// let mut numbers = Vec::new_in(&heap);
/// numbers.extend(0..1000);
/// assert_eq!(heap.stats().blocks, 1);
/// ```
///
/// ```compile_fail,E0505
/// let heap = hmalloc::Heap::new().unwrap();
/// let numbers = allocator_api2::vec::Vec::<u8, _>::new_in(&heap);
/// drop(heap);
/// drop(numbers);
/// ```
#[derive(Debug)]
pub struct Heap {
    handle: NonNull<sys::hm_heap>,
}

// SAFETY: nothing of a heap belongs to a thread, and its functions may be called by any number of them at once.
unsafe impl Send for Heap {}
unsafe impl Sync for Heap {}

impl Heap {
    /// An empty one, which takes 2 KB; none if there is no memory.
    pub fn new() -> Option<Self> {
        NonNull::new(unsafe { sys::hm_heap_create() }).map(|handle| Heap { handle })
    }

    /// What it holds, counted now: some nanoseconds for each block.
    pub fn stats(&self) -> HeapStats {
        let mut stats = HeapStats { size: size_of::<HeapStats>(), ..HeapStats::default() };
        unsafe { sys::hm_heap_stats_get(self.handle.as_ptr(), &mut stats) }
        stats
    }

    unsafe fn resize(&self, block: NonNull<u8>, old: Layout, new: Layout) -> Result<NonNull<[u8]>, AllocError> {
        if old.size() == 0 || new.size() == 0 || old.align().max(new.align()) > ALIGNMENT {
            return unsafe { move_block(self, block, old, new) };
        }
        let resized = unsafe { sys::hm_heap_realloc(self.handle.as_ptr(), block.as_ptr().cast(), new.size()) };
        found(resized.cast(), new.size())
    }
}

impl Drop for Heap {
    fn drop(&mut self) {
        unsafe { sys::hm_heap_destroy(self.handle.as_ptr()) }
    }
}

// SAFETY: its blocks are valid until they are freed or it is dropped; it has no copies, and may be moved.
unsafe impl Allocator for Heap {
    fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        if layout.size() == 0 {
            return empty(layout);
        }
        let block = unsafe { sys::hm_heap_aligned_alloc(self.handle.as_ptr(), layout.align(), layout.size()) };
        found(block.cast(), layout.size())
    }

    unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
        if layout.size() > 0 {
            unsafe { sys::hm_free(block.as_ptr().cast()) }
        }
    }

    unsafe fn grow(&self, block: NonNull<u8>, old: Layout, new: Layout) -> Result<NonNull<[u8]>, AllocError> {
        unsafe { self.resize(block, old, new) }
    }

    unsafe fn shrink(&self, block: NonNull<u8>, old: Layout, new: Layout) -> Result<NonNull<[u8]>, AllocError> {
        unsafe { self.resize(block, old, new) }
    }
}
