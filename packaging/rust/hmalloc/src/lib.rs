//! hmalloc, a memory allocator for multi-threaded Linux programs on x86-64 and AArch64. It is fastest where one thread frees
//! what another one allocated: pipelines, message queues, actors, servers with I/O threads.
//!
//! ```
//! #[global_allocator]
//! static ALLOCATOR: hmalloc::HMalloc = hmalloc::HMalloc;
//!
//! let messages: Vec<String> = (0..1000).map(|n| format!("message {n}")).collect();
//! assert!(hmalloc::stats().allocated > messages.len() as u64);
//! ```
//!
//! The build compiles the allocator, which takes a C++20 compiler; the program needs libc alone. C code in the program keeps
//! libc's `malloc`. The options of hmalloc's manual (`HMALLOC_SHOW_STATS=1`, `HMALLOC_LIMIT=80%`) are read from the environment.
//!
//! Features:
//! - `allocator-api2`: [`HMalloc`], `Local`, `Shared` and `Heap` are allocators for the collections of the crate
//!   `allocator_api2`, and of others on its trait.
//! - `checked`: frees with a wrong size, double frees and frees of what is no block end the program with one line.
//! - `hardened`: the library against attackers, which also finds what was written beyond a block's end ([`check`]).
#![warn(missing_docs)]
#![deny(unsafe_op_in_unsafe_fn)]

use std::alloc::{GlobalAlloc, Layout};
use std::os::raw::c_void;
use std::os::unix::io::{AsFd, AsRawFd};
use std::{io, ptr};

/// The C API, for what has no function here: caches of one block size, how near a limit is, a background thread.
pub use hmalloc_sys as sys;
/// What `Heap::stats` returns.
pub use hmalloc_sys::hm_heap_stats as HeapStats;
/// What [`stats`] returns.
pub use hmalloc_sys::hm_stats as Stats;

#[cfg(feature = "allocator-api2")]
mod allocators;
#[cfg(feature = "allocator-api2")]
pub use allocators::{Heap, Local, Shared};

/// Every block has this alignment at least. Those of a larger one come from another function, and are freed without their size.
const ALIGNMENT: usize = 16;

/// hmalloc as the global allocator. Blocks are freed by their size, which reads nothing but the calling thread's cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HMalloc;

// SAFETY: blocks are disjoint, of the size and the alignment asked for, and of any thread. Nothing unwinds out of C.
unsafe impl GlobalAlloc for HMalloc {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.align() <= ALIGNMENT {
            unsafe { sys::hm_malloc(layout.size()).cast() }
        } else {
            unsafe { sys::hm_aligned_alloc(layout.align(), layout.size()).cast() }
        }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if layout.align() <= ALIGNMENT {
            unsafe { sys::hm_free_sized(block.cast(), layout.size()) }
        } else {
            unsafe { sys::hm_free(block.cast()) }
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if layout.align() <= ALIGNMENT {
            return unsafe { sys::hm_calloc(1, layout.size()).cast() };
        }
        let block = unsafe { self.alloc(layout) };
        if !block.is_null() {
            unsafe { block.write_bytes(0, layout.size()) }
        }
        block
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if layout.align() <= ALIGNMENT {
            // Not hm_realloc, which may leave a block where it could not be freed by its new size.
            return unsafe { sys::hm_local_realloc(block.cast(), size).cast() };
        }
        let fresh = unsafe { self.alloc(Layout::from_size_align_unchecked(size, layout.align())) };
        if !fresh.is_null() {
            unsafe {
                ptr::copy_nonoverlapping(block, fresh, layout.size().min(size));
                self.dealloc(block, layout);
            }
        }
        fresh
    }
}

/// Bytes that may be used at a block, at least the size requested.
///
/// # Safety
/// The block is a live one of hmalloc's.
pub unsafe fn usable_size(block: *const u8) -> usize {
    unsafe { sys::hm_usable_size(block.cast::<c_void>()) }
}

/// Where memory is, in bytes, and what hmalloc did so far. It takes microseconds.
///
/// ```
/// let stats = hmalloc::stats();
/// assert!(stats.allocated <= stats.active && stats.active <= stats.mapped);
/// ```
pub fn stats() -> Stats {
    let mut stats = Stats::default();
    unsafe { sys::hm_stats_get(&mut stats) }
    stats
}

/// How [`write_stats`] writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// For people.
    Text = sys::HM_STATS_TEXT as isize,
    /// One line of JSON.
    Json = sys::HM_STATS_JSON as isize,
    /// OpenMetrics 1.0, as Prometheus reads it.
    OpenMetrics = sys::HM_STATS_OPENMETRICS as isize,
}

/// Writes the statistics to a file, also by class and by thread. Allocates nothing.
///
/// ```
/// hmalloc::write_stats(std::io::stderr(), hmalloc::Form::Text);
/// ```
pub fn write_stats(to: impl AsFd, form: Form) {
    unsafe { sys::hm_stats_print(to.as_fd().as_raw_fd(), form as i32) }
}

/// Gives every page that holds no block back to the system now. Says whether memory went back.
pub fn collect() -> bool {
    unsafe { sys::hm_collect() != 0 }
}

/// For a thread that is going to sleep for long: gives back what its heap holds, and the heap, which another thread may then
/// have. Its blocks stay, and its next allocation finds it a heap. Handles of [`sys::hm_cache_of`] are invalid afterwards.
pub fn thread_idle() {
    unsafe { sys::hm_thread_idle() }
}

/// With the feature `hardened`: looks at what lies around all blocks in use, and ends the program where something was written
/// that is no part of one. Returns how many blocks are in use; without the feature 0.
pub fn check() -> usize {
    unsafe { sys::hm_check() }
}

/// Begins to sample: of the bytes allocated from now on, one in `rate` on average (0: 512 KB) has its block put into the
/// profile, with the stack that allocated it. Again: changes the rate. An error: no memory, or no stacks can be taken.
pub fn start_profile(rate: usize) -> io::Result<()> {
    result(unsafe { sys::hm_profile_start(rate) })
}

/// Samples no more. Blocks that were sampled stay in the profile until they are freed.
pub fn stop_profile() {
    unsafe { sys::hm_profile_stop() }
}

/// Writes the profile to a file, as pprof reads it.
///
/// ```
/// # fn main() -> std::io::Result<()> {
/// # let file = std::env::temp_dir().join(format!("hmalloc-{}.pb", std::process::id()));
/// hmalloc::start_profile(0)?;
/// // ... the work ...
/// hmalloc::write_profile(std::fs::File::create(&file)?)?;
/// # assert!(std::fs::metadata(&file)?.len() > 0);
/// # std::fs::remove_file(file)
/// # }
/// ```
pub fn write_profile(to: impl AsFd) -> io::Result<()> {
    result(unsafe { sys::hm_profile_dump(to.as_fd().as_raw_fd()) })
}

fn result(error: i32) -> io::Result<()> {
    match error {
        0 => Ok(()),
        number => Err(io::Error::from_raw_os_error(number)),
    }
}
