#include "pack.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <queue>
#include <unordered_map>

namespace hm::trace {
namespace {

// The records of one thread in order, without those that changed nothing.
class Cursor {
 public:
  Cursor(const std::vector<const Chunk*>& chunks, uint64_t stopped_at) : stopped_at_(stopped_at) {
    // A process that is still alive continues to fill its last chunk; these records do not count.
    for (const Chunk* chunk : chunks) chunks_.push_back({chunk->records(), chunk->used});
    repair_after_fork();
  }

  const Record* head() const { return head_; }
  void advance() {
    ++index_;
    repair_after_fork();
  }
  // The second half of the realloc at the head.
  const Record& realloc_result() const { return *peek(1); }

 private:
  const Record* peek(uint32_t ahead) const {
    size_t chunk = chunk_;
    uint64_t index = uint64_t{index_} + ahead;
    for (; chunk < chunks_.size() && index >= chunks_[chunk].used; ++chunk) index -= chunks_[chunk].used;
    if (chunk == chunks_.size()) return nullptr;
    const Record* record = chunks_[chunk].records + index;
    return record->time <= stopped_at_ ? record : nullptr;
  }

  // A realloc that failed, or that the process did not survive, left the old block unchanged.
  bool is_void_realloc() const {
    if (Call{static_cast<uint8_t>(head_->call)} != Call::kReallocOld) return false;
    const Record* result = peek(1);
    return result == nullptr || (result->address == 0 && result->size != 0);
  }

  void repair_after_fork() {
    for (;;) {
      while (chunk_ < chunks_.size() && index_ >= chunks_[chunk_].used) {
        index_ -= chunks_[chunk_].used;
        ++chunk_;
      }
      head_ = peek(0);
      if (head_ == nullptr || !is_void_realloc()) return;
      index_ += 2;
    }
  }

  struct Records {
    const Record* records;
    uint32_t used;
  };
  std::vector<Records> chunks_;
  uint64_t stopped_at_;
  size_t chunk_ = 0;
  uint32_t index_ = 0;
  const Record* head_ = nullptr;
};

class Packer {
 public:
  Packer(const Spool& spool, Writer& writer) : writer_(writer) {
    const SpoolHeader& header = spool.header();
    for (const auto& chunks : spool.chunks()) cursors_.emplace_back(chunks, header.stopped_at);
    threads_.resize(cursors_.size());
    header_.program = header.program;
    for (const char* word = header.command; *word != 0; word += std::strlen(word) + 1) header_.command.push_back(word);
    header_.allocator = header.allocator;
    header_.pid = header.pid;
    header_.parent = header.parent;
    int error = header.stop_error;
    if (error != 0) header_.stopped = error == EFBIG ? "limit" : std::strerror(error);
  }

  // Merges the threads by time.  If several stamps are equal, because the clock is coarse, the first record is one that
  // fits what lives at its address: a free before the malloc that gave the address to another thread, a malloc before
  // the free by another thread.
  Header merge() {
    using Head = std::pair<uint64_t, size_t>;
    std::priority_queue<Head, std::vector<Head>, std::greater<>> heads;
    auto enqueue = [&](size_t thread) {
      if (const Record* head = cursors_[thread].head()) heads.emplace(head->time, thread);
    };
    for (size_t thread = 0; thread < cursors_.size(); ++thread) enqueue(thread);
    while (!heads.empty()) {
      uint64_t time = heads.top().first;
      std::vector<size_t> tied;
      for (; !heads.empty() && heads.top().first == time; heads.pop()) tied.push_back(heads.top().second);
      while (!tied.empty()) {
        auto chosen = std::find_if(tied.begin(), tied.end(), [&](size_t thread) { return fits(thread); });
        if (chosen == tied.end()) chosen = tied.begin();  // a foreign block
        take(*chosen);
        const Record* head = cursors_[*chosen].head();
        if (head != nullptr && head->time == time) continue;
        enqueue(*chosen);
        tied.erase(chosen);
      }
    }
    return header_;
  }

 private:
  struct ThreadState {
    bool has_begun = false;
    uint32_t number = 0;
    uint64_t result = 0;  // the block that its realloc makes
  };

  static Call call_of(const Record& record) { return Call{static_cast<uint8_t>(record.call)}; }

  bool fits(size_t thread) const {
    const Record& record = *cursors_[thread].head();
    bool ends = call_of(record) == Call::kFree || call_of(record) == Call::kReallocOld;
    return live_.contains(record.address) == ends;
  }

  void take(size_t index) {
    Cursor& cursor = cursors_[index];
    ThreadState& thread = threads_[index];
    const Record& record = *cursor.head();
    switch (call_of(record)) {
      case Call::kFree: end(thread, record); break;
      case Call::kReallocOld: reallocate(thread, record, cursor.realloc_result()); break;
      case Call::kReallocNew:
        if (record.address != 0) place(thread, record, thread.result);
        break;
      default: make(thread, record);
    }
    cursor.advance();
  }

  void make(ThreadState& thread, const Record& record) {
    uint64_t block = made_++;
    place(thread, record, block);
    Kind kind = call_of(record) == Call::kCalloc    ? Kind::kCalloc
                : call_of(record) == Call::kAligned ? Kind::kAligned
                                                    : Kind::kMalloc;
    emit(thread, {.kind = kind,
                  .alignment = static_cast<uint8_t>(record.alignment),
                  .time = record.time,
                  .block = block,
                  .size = record.size});
  }

  // Counted at the time of the call, although the new block's address is known only when it returns.
  void reallocate(ThreadState& thread, const Record& record, const Record& result) {
    auto old = live_.find(record.address);
    bool is_foreign = old == live_.end();
    Event event{.kind = is_foreign ? Kind::kMalloc : Kind::kRealloc, .time = record.time, .size = result.size};
    if (is_foreign) {
      ++header_.foreign_frees;
    } else {
      event.old = old->second;
      live_.erase(old);
    }
    if (result.address != 0) {
      event.block = thread.result = made_++;
      emit(thread, event);
    } else if (!is_foreign) {  // realloc(block, 0)
      emit(thread, {.kind = Kind::kFree, .time = record.time, .block = event.old});
    }
  }

  void end(ThreadState& thread, const Record& record) {
    auto block = live_.find(record.address);
    if (block == live_.end()) {
      ++header_.foreign_frees;
      return;
    }
    emit(thread, {.kind = Kind::kFree, .time = record.time, .block = block->second});
    live_.erase(block);
  }

  void place(ThreadState& thread, const Record& record, uint64_t block) {
    auto [at, is_new] = live_.try_emplace(record.address, block);
    if (is_new) return;
    ++header_.implied_frees;
    emit(thread, {.kind = Kind::kFree, .time = record.time, .block = at->second});
    at->second = block;
  }

  void emit(ThreadState& thread, Event event) {
    if (!thread.has_begun) thread = {.has_begun = true, .number = header_.threads, .result = thread.result};
    if (header_.operations() == 0) first_time_ = event.time;
    event.thread = thread.number;
    event.time -= first_time_;
    count(header_, event);
    writer_.add(event);
  }

  Writer& writer_;
  Header header_;
  std::vector<Cursor> cursors_;
  std::vector<ThreadState> threads_;
  std::unordered_map<uint64_t, uint64_t> live_;  // address to block
  uint64_t made_ = 0;
  uint64_t first_time_ = 0;
};

}  // namespace

Header pack(const Spool& spool, Writer& writer) { return Packer(spool, writer).merge(); }

}  // namespace hm::trace
