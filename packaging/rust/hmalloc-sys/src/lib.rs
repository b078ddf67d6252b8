//! The C API of hmalloc, a memory allocator for multi-threaded Linux programs, with the allocator itself: the build compiles
//! its sources. The crate `hmalloc` is what a program uses; this one has each function of `hmalloc.h`, as it is there.
//!
//! Sizes and alignments are bytes, every block is aligned to at least 16. Any thread may free any block, by any of the
//! functions, and call every function at any time; none is async-signal-safe. Allocation functions return null where there is
//! no memory. A pointer that is no live block ends the program with one line that says why, except in `hm_free_sized`,
//! `hm_shared_free_sized`, `hm_local_free_sized` and `hm_cache_free`, which trust their caller.
//!
//! The process keeps its own `malloc`: only what calls these functions, or Rust's global allocator if it is hmalloc, is served.
#![no_std]
#![warn(missing_docs)]
#![allow(non_camel_case_types)]

#[cfg(not(all(target_os = "linux", target_pointer_width = "64", any(target_arch = "x86_64", target_arch = "aarch64"))))]
compile_error!("hmalloc runs on Linux, on x86-64 and AArch64");

use core::ffi::c_void;
use core::marker::{PhantomData, PhantomPinned};

/// C's `int`, on all systems that hmalloc runs on.
pub type c_int = i32;
/// C's `char`, as this processor has it.
#[cfg(target_arch = "x86_64")]
pub type c_char = i8;
/// C's `char`, as this processor has it.
#[cfg(not(target_arch = "x86_64"))]
pub type c_char = u8;

/// The calling thread's cache of the blocks of one size.
#[repr(C)]
pub struct hm_cache {
    opaque: [u8; 0],
    of_one_thread: PhantomData<(*mut u8, PhantomPinned)>,
}

/// A heap of the program's own.
#[repr(C)]
pub struct hm_heap {
    opaque: [u8; 0],
    of_c: PhantomData<(*mut u8, PhantomPinned)>,
}

/// What a heap of the program's own holds.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct hm_heap_stats {
    /// The size of this structure, as the caller knows it.
    pub size: usize,
    /// That the program holds.
    pub blocks: u64,
    /// Bytes in these, as hmalloc rounds them up.
    pub allocated: u64,
    /// Bytes of memory that no other request is served from.
    pub held: u64,
}

/// Gauges in bytes. `allocated <= active <= resident` (roughly) `<= mapped`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct hm_stats {
    /// In blocks the program holds.
    pub allocated: u64,
    /// In blocks that wait in block caches.
    pub cached: u64,
    /// In superblocks and large blocks that hold a block.
    pub active: u64,
    /// Active, metadata, and freed pages that were not yet given back: an upper estimate.
    pub resident: u64,
    /// Mapped, holding no block: already given back, or about to be.
    pub retained: u64,
    /// Address space held.
    pub mapped: u64,
    /// Descriptors, state bytes and heaps in use.
    pub metadata: u64,
    /// The largest `active` so far.
    pub peak_active: u64,
    /// The most that hmalloc keeps beyond the program's own peak.
    pub bound: u64,
    /// Frees of blocks of another heap's superblocks, counted when caches are flushed.
    pub cross_thread_frees: u64,
    /// Empty block caches filled.
    pub refills: u64,
    /// Full block caches emptied by half.
    pub flushes: u64,
    /// Bytes given back to the system so far.
    pub purged: u64,
    /// System calls for memory so far.
    pub os_calls: u64,
    /// Thread heaps in existence.
    pub heaps: u32,
    /// Of these, the ones that have a thread now.
    pub live_heaps: u32,
}

/// For [`hm_stats_print`]: text for people.
pub const HM_STATS_TEXT: c_int = 0;
/// For [`hm_stats_print`]: JSON.
pub const HM_STATS_JSON: c_int = 1;
/// For [`hm_stats_print`]: OpenMetrics 1.0.
pub const HM_STATS_OPENMETRICS: c_int = 2;

// One declaration a line, in the header's order: tests/header.rs compares.
#[rustfmt::skip]
extern "C" {
    /// The version of the library, as `0.1.0`.
    pub fn hm_version() -> *const c_char;

    /// A block of `size` bytes; null: no memory.
    pub fn hm_malloc(size: usize) -> *mut c_void;
    /// A zeroed block of `count` times `size` bytes; null: no memory, or the product overflows.
    pub fn hm_calloc(count: usize, size: usize) -> *mut c_void;
    /// Gives a block another size, at another place if need be; null: no memory, and the block is as it was.
    pub fn hm_realloc(block: *mut c_void, size: usize) -> *mut c_void;
    /// A block with an alignment, which must be a power of two.
    pub fn hm_aligned_alloc(alignment: usize, size: usize) -> *mut c_void;
    /// Frees a block of any kind; null is allowed.
    pub fn hm_free(block: *mut c_void);
    /// Like `hm_free`, without a look at metadata: for callers that know the size they asked `hm_malloc`, `hm_calloc`,
    /// `hm_local_alloc` or `hm_local_realloc` for.
    pub fn hm_free_sized(block: *mut c_void, size: usize);
    /// Bytes that may be used at a block, at least the size requested; 0 for null.
    pub fn hm_usable_size(block: *const c_void) -> usize;

    /// A block that shares no 64-byte line with another one: for messages that other threads will free.
    pub fn hm_shared_alloc(size: usize) -> *mut c_void;
    /// Frees a block of any kind.
    pub fn hm_shared_free(block: *mut c_void);
    /// The same without a look at metadata: for callers that know the size they asked `hm_shared_alloc` for.
    pub fn hm_shared_free_sized(block: *mut c_void, size: usize);

    /// A block that the calling thread should free itself.
    pub fn hm_local_alloc(size: usize) -> *mut c_void;
    /// Frees a block of any kind.
    pub fn hm_local_free(block: *mut c_void);
    /// The same without a look at metadata: for callers that know the size they asked `hm_local_alloc` or `hm_local_realloc`
    /// for last.
    pub fn hm_local_free_sized(block: *mut c_void, size: usize);
    /// Moves the block unless it has the size of a fresh one: so it can fail for a smaller size, too.
    pub fn hm_local_realloc(block: *mut c_void, size: usize) -> *mut c_void;
    /// As `hm_usable_size`.
    pub fn hm_local_usable_size(block: *const c_void) -> usize;

    /// The calling thread's cache of blocks of `hm_malloc(size)`, until the thread ends or calls `hm_thread_idle`. Null: there
    /// is none for this size (above 32 KB), no memory, or while a profile runs.
    pub fn hm_cache_of(size: usize) -> *mut hm_cache;
    /// The same for blocks of `hm_shared_alloc(size)`.
    pub fn hm_shared_cache_of(size: usize) -> *mut hm_cache;
    /// A block of the cache's size.
    pub fn hm_cache_alloc(cache: *mut hm_cache) -> *mut c_void;
    /// Frees a live block of the cache's size, without a look at metadata.
    pub fn hm_cache_free(cache: *mut hm_cache, block: *mut c_void);

    /// A heap of the program's own; null: no memory.
    pub fn hm_heap_create() -> *mut hm_heap;
    /// Frees all blocks of the heap, which nobody may use any more, and the heap; null is allowed.
    pub fn hm_heap_destroy(heap: *mut hm_heap);
    /// As `hm_malloc`, in the heap. What frees blocks of heaps is `hm_free`, and nothing that is told their size.
    pub fn hm_heap_malloc(heap: *mut hm_heap, size: usize) -> *mut c_void;
    /// As `hm_calloc`, in the heap.
    pub fn hm_heap_calloc(heap: *mut hm_heap, count: usize, size: usize) -> *mut c_void;
    /// As `hm_aligned_alloc`, in the heap.
    pub fn hm_heap_aligned_alloc(heap: *mut hm_heap, alignment: usize, size: usize) -> *mut c_void;
    /// As `hm_realloc`, of a block of this heap, or null.
    pub fn hm_heap_realloc(heap: *mut hm_heap, block: *mut c_void, size: usize) -> *mut c_void;
    /// Fills in as much as `size` says.
    pub fn hm_heap_stats_get(heap: *mut hm_heap, out: *mut hm_heap_stats);

    /// Gives every page that holds no block back to the system; 1 if memory went back, else 0.
    pub fn hm_collect() -> c_int;
    /// For a thread that is going to sleep for long: gives back what its heap holds, and the heap.
    pub fn hm_thread_idle();
    /// Hardened library: looks at what lies around all blocks in use, and returns their number; else 0.
    pub fn hm_check() -> usize;

    /// How near the process is to `HMALLOC_LIMIT`: 0, 1 (above seven eighths) or 2 (a request was refused).
    pub fn hm_pressure() -> c_int;
    /// An eventfd to which 1 is added whenever `hm_pressure` may have become 1 or 2; -1: none.
    pub fn hm_pressure_notify(eventfd: c_int);

    /// Starts a thread that gives memory back while the program makes no calls; 0, or the error number of `pthread_create`.
    pub fn hm_background_start() -> c_int;

    /// Fills in the statistics.
    pub fn hm_stats_get(out: *mut hm_stats);
    /// Writes them to a descriptor, also by class and thread, in one of the forms `HM_STATS_`.
    pub fn hm_stats_print(fd: c_int, form: c_int);

    /// Begins to sample one of `rate` bytes on average (0: 512 KB) for a profile; 0, `ENOTSUP` or `ENOMEM`.
    pub fn hm_profile_start(rate: usize) -> c_int;
    /// Samples no more.
    pub fn hm_profile_stop();
    /// Writes the profile to a descriptor, as pprof reads it; 0 or an error number.
    pub fn hm_profile_dump(fd: c_int) -> c_int;
}
