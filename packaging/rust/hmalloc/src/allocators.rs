//! The allocators for collections that name theirs.
use std::alloc::{GlobalAlloc, Layout};
use std::marker::PhantomData;
use std::ptr::{self, NonNull};

use allocator_api2::alloc::{AllocError, Allocator};

use crate::{sys, HMalloc, ALIGNMENT};

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
    let fresh = allocator.allocate(new)?;
    unsafe {
        ptr::copy_nonoverlapping(block.as_ptr(), fresh.as_ptr().cast(), old.size().min(new.size()));
        allocator.deallocate(block, old);
    }
    Ok(fresh)
}
