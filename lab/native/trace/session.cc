#include "session.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace hm::trace {
namespace {

constexpr size_t kMaxChunk = 256 << 10;

// Lies in a page that the kernel empties in the child of a fork: the child finds no session and begins its own, by
// whatever kind of fork and whichever thread it was made.
struct Session {
  std::atomic<bool> taken;   // a thread has begun to open it
  std::atomic<uint64_t> id;  // the time when it was opened; 0: not yet
  SpoolHeader* spool;        // null: this process is not recorded
  uint64_t size;
};
constinit Session no_session{};  // of a process before its first call
constinit std::atomic<Session*> current{&no_session};

struct ThisThread {
  uint64_t session = ~uint64_t{0};  // the session that the other members belong to
  Chunk* chunk = nullptr;
  uint32_t capacity = 0;
  uint32_t number = 0;
};
constinit thread_local ThisThread me;

// Never decreases from one processor to another, if the second reading was caused by the first.
uint64_t now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

void say(const char* text) {
  ssize_t written = write(2, text, strlen(text));
  static_cast<void>(written);
}

template <size_t kRoom>
void read_text(char (&text)[kRoom], const char* path) {  // ended by two zeros
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  ssize_t length = read(file, text, kRoom - 2);
  close(file);
  text[length > 0 ? length : 0] = 0;
}

// Reserves room on the disk and in the page tables.  Without room this fails, whereas a plain write would end the
// process with SIGBUS.  It keeps no descriptor: programs close descriptors that they do not know.
bool populate(void* begin, size_t bytes) {
  while (madvise(begin, bytes, MADV_POPULATE_WRITE) != 0) {
    if (errno != EINTR) return false;
  }
  return true;
}

void fill_header(SpoolHeader& spool, size_t page) {
  spool.started = now();
  spool.page = static_cast<uint32_t>(page);
  spool.pid = getpid();
  spool.parent = getppid();
  spool.next = page;
  if (readlink("/proc/self/exe", spool.program, sizeof spool.program - 1) < 0) spool.program[0] = 0;
  read_text(spool.command, "/proc/self/cmdline");
  Dl_info info;
  void* allocator = dlsym(RTLD_NEXT, "malloc");
  if (allocator != nullptr && dladdr(allocator, &info) != 0) {
    snprintf(spool.allocator, sizeof spool.allocator, "%s", info.dli_fname);
  }
  spool.magic = SpoolHeader::kMagic;
}

// Begins the spool file: reserves all of its address space at once, its memory and disk space chunk by chunk.
SpoolHeader* open_spool(const char* folder, uint64_t size) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%d.%llu", folder, getpid(), static_cast<unsigned long long>(now()));
  int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) {
    bool is_over = errno == ENOENT;  // the recorded program has ended, and left this process behind
    if (!is_over) say("hmalloc-record: this process is not recorded: it may not write into the folder of the trace\n");
    return nullptr;
  }
  void* memory = MAP_FAILED;
  if (ftruncate(file, static_cast<off_t>(size)) == 0) {
    memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  }
  close(file);
  size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  if (memory != MAP_FAILED && populate(memory, page)) {
    fill_header(*static_cast<SpoolHeader*>(memory), page);
    return static_cast<SpoolHeader*>(memory);
  }
  say(errno == EINVAL ? "hmalloc-record: this process is not recorded: that needs Linux 5.14\n"
                      : "hmalloc-record: this process is not recorded: no room for its records\n");
  if (memory != MAP_FAILED) munmap(memory, size);
  unlink(path);
  return nullptr;
}

uint64_t limit() {
  const char* text = getenv(kLimitVariable);
  uint64_t bytes = text == nullptr ? 0 : strtoull(text, nullptr, 10);
  rlimit most{};  // making the file longer than this would cause a signal
  if (getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur < bytes) bytes = most.rlim_cur;
  return bytes / kMaxChunk * kMaxChunk;
}

// The loader allocates before libc knows the environment; those first blocks are not recorded.
bool environment_is_known() { return environ != nullptr; }

// A thread that calls while another one opens the session is not recorded, which can happen only at the very start;
// waiting might last for ever, in a signal handler.
void open_session() {
  Session* session = current.load(std::memory_order_acquire);
  if (!environment_is_known() || session->taken.exchange(true)) return;
  int saved = errno;
  if (session == &no_session) {
    void* page = mmap(nullptr, sizeof(Session), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bool is_usable = page != MAP_FAILED && madvise(page, sizeof(Session), MADV_WIPEONFORK) == 0;
    errno = saved;
    if (!is_usable) return;
    session = static_cast<Session*>(page);
    session->taken = true;
  }
  const char* folder = getenv(kFolderVariable);
  session->size = limit();
  session->spool = folder != nullptr && session->size > 0 ? open_spool(folder, session->size) : nullptr;
  session->id.store(now(), std::memory_order_release);
  current.store(session, std::memory_order_release);
  errno = saved;
}

Chunk* stop(SpoolHeader& spool, int error) {
  uint64_t running = 0;
  if (spool.stopped_at.compare_exchange_strong(running, now())) spool.stop_error = error;
  return nullptr;
}

// A thread's first chunk is one page, because there may be many threads; each further one is twice as large.
Chunk* next_chunk(const Session& session) {
  SpoolHeader* spool = session.spool;
  if (spool == nullptr || spool->stopped_at.load(std::memory_order_relaxed) != 0) return nullptr;
  size_t bytes = me.chunk == nullptr
                     ? spool->page
                     : std::min<size_t>(size_t{me.chunk->pages} * spool->page * 2, std::max<size_t>(kMaxChunk, spool->page));
  uint64_t offset = spool->next.fetch_add(bytes);
  if (offset + bytes > session.size) return stop(*spool, EFBIG);
  int saved = errno;
  auto* chunk = reinterpret_cast<Chunk*>(reinterpret_cast<char*>(spool) + offset);
  bool has_room = populate(chunk, bytes);
  int error = errno == EFAULT ? ENOSPC : errno;
  errno = saved;
  if (!has_room) return stop(*spool, error);
  if (me.number == 0) me.number = spool->threads.fetch_add(1) + 1;
  me.capacity = Chunk::capacity(bytes);
  chunk->thread = me.number;
  chunk->pages = static_cast<uint32_t>(bytes / spool->page);
  chunk->magic = Chunk::kMagic;
  return chunk;
}

// Slow path: the thread's first call, its first one after a fork, and one after each full chunk.
bool find_room() {
  Session* session = current.load(std::memory_order_acquire);
  if (session->id.load(std::memory_order_acquire) == 0) {
    open_session();
    session = current.load(std::memory_order_acquire);
  }
  uint64_t id = session->id.load(std::memory_order_acquire);
  if (id == 0) return false;
  if (me.session != id) me = ThisThread{.session = id};
  me.chunk = next_chunk(*session);
  return me.chunk != nullptr;
}

inline bool has_room() {
  return me.session == current.load(std::memory_order_relaxed)->id.load(std::memory_order_relaxed) && me.chunk != nullptr &&
         me.chunk->used.load(std::memory_order_relaxed) < me.capacity;
}

}  // namespace

void record(Call call, const void* block, size_t size, unsigned alignment) noexcept {
  if (!has_room() && !find_room()) [[unlikely]]
    return;
  uint32_t used = me.chunk->used.load(std::memory_order_relaxed);
  Record& record = me.chunk->records()[used];
  record.time = now();
  record.address = reinterpret_cast<uint64_t>(block);
  record.size = size & ((uint64_t{1} << 48) - 1);
  record.call = static_cast<uint8_t>(call);
  record.alignment = alignment & 0xff;
  me.chunk->used.store(used + 1, std::memory_order_release);
}

}  // namespace hm::trace
