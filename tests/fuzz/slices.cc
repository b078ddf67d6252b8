// Fuzzer of the slice pool: runs are taken, grown, shrunk, given back and purged; a model knows which slices are taken and
// which ones have been written to.

#include "base/address_map.h"
#include "fuzz.h"
#include "pages/slice_pool.h"

namespace {

using hm::kSlice;
using hm::SlicePool;

constexpr size_t kMaxRuns = 64, kMaxSlices = 2000;

struct Taken {
  hm::Slice* first = nullptr;
  size_t slices = 0;
  uint64_t name = 0;
};

class Model {
 public:
  explicit Model(SlicePool& pool) : pool_(pool) {}

  void step(fuzz::Stream& in) {
    unsigned code = in.byte();
    Taken& run = runs_[in.below(kMaxRuns)];
    if (code % 16 == 14) return purge(in.byte() % 2 == 0, in.byte());
    if (code % 16 == 15) return compare();
    if (run.first == nullptr) return take(run, in);
    check(run);
    switch (code % 4) {
      case 0: grow(run, 1 + in.below(SlicePool::kMaxRun)); break;
      case 1: shrink(run, in.below(run.slices)); break;
      default: give_back(run); break;
    }
  }

  void finish() {
    for (Taken& run : runs_)
      if (run.first != nullptr) check(run), give_back(run);
    pool_.purge(SlicePool::Purge::kAll);
    pool_.purge(SlicePool::Purge::kAll);
    compare();
    fuzz::expect(pool_.gauges().dirty_slices == 0, "a purge of all has left slices");
  }

 private:
  static uint64_t* word(const Taken& run, size_t slice, size_t at) {
    return reinterpret_cast<uint64_t*>(run.first->base() + slice * kSlice + at);
  }
  static void write(const Taken& run, size_t from) {
    for (size_t slice = from; slice < run.slices; ++slice)
      for (size_t at : {size_t{0}, kSlice / 2, kSlice - 8}) *word(run, slice, at) = run.name + slice;
  }
  static void check(const Taken& run) {
    for (size_t slice = 0; slice < run.slices; ++slice)
      for (size_t at : {size_t{0}, kSlice / 2, kSlice - 8})
        fuzz::expect(*word(run, slice, at) == run.name + slice, "a slice holds something else", word(run, slice, at));
  }

  void take(Taken& run, fuzz::Stream& in) {
    unsigned code = in.byte();
    size_t n = 1 + (code % 4 == 0 ? in.below(SlicePool::kMaxRun) : in.below(6));
    bool map = code % 8 != 1 && slices_ + n <= kMaxSlices;
    SlicePool::Run got = pool_.allocate(n, map);
    if (got.first == nullptr) return fuzz::expect(!map, "no slices");
    Taken fresh{got.first, n, ++names_ << 32};
    auto address = reinterpret_cast<uintptr_t>(got.first->base());
    fuzz::expect(address % kSlice == 0, "a run is not aligned", got.first->base());
    fuzz::expect(address / hm::kChunk == (address + n * kSlice - 1) / hm::kChunk, "a run leaves its chunk",
                 got.first->base());
    fuzz::expect(address % hm::kRegion >= hm::kMetaSlices * kSlice, "a run lies in the metadata", got.first->base());
    fuzz::expect(hm::AddressMap::kind(address) == hm::ChunkKind::kSlices, "a run is not in the map", got.first->base());
    for (const Taken& other : runs_)
      fuzz::expect(other.first == nullptr || got.first >= other.first + other.slices || other.first >= got.first + n,
                   "two runs overlap", got.first->base());
    if (got.zeroed)
      for (size_t at = 0; at < n * kSlice; at += kSlice / 8)
        fuzz::expect(fuzz::is_zero(got.first->base() + at, 8), "a run is called zero and is not", got.first->base() + at);
    run = fresh;
    slices_ += n;
    write(run, 0);
  }

  void grow(Taken& run, size_t more) {
    if (run.slices + more > SlicePool::kMaxRun || !pool_.extend(*run.first, run.slices, run.slices + more)) return;
    for (const Taken& other : runs_)
      fuzz::expect(other.first <= run.first || other.first >= run.first + run.slices + more, "a run has grown over another");
    size_t before = run.slices;
    run.slices += more;
    slices_ += more;
    write(run, before);
    check(run);
  }

  void shrink(Taken& run, size_t to) {
    if (to == 0) return;
    pool_.release(run.first[to], run.slices - to);
    slices_ -= run.slices - to;
    run.slices = to;
  }

  void give_back(Taken& run) {
    pool_.release(*run.first, run.slices);
    slices_ -= run.slices;
    run = {};
  }

  void purge(bool all, size_t most) {
    pool_.purge(all ? SlicePool::Purge::kAll : SlicePool::Purge::kDue, most % 2 == 0 ? SIZE_MAX : most * kSlice);
    for (const Taken& run : runs_)
      if (run.first != nullptr) check(run);
  }

  // What is open is used or free.
  void compare() {
    SlicePool::Gauges g = pool_.gauges();
    fuzz::expect(g.dirty_slices <= g.free_slices, "more dirty slices than free ones");
    fuzz::expect(g.free_slices + slices_ <= g.chunks * hm::kSlicesInChunk, "more slices than chunks hold");
    size_t metadata = g.chunks * hm::kSlicesInChunk - g.free_slices - slices_;
    fuzz::expect(metadata % hm::kMetaSlices == 0 && metadata / hm::kMetaSlices <= g.chunks, "slices are lost");
    fuzz::expect(g.max_used_slices >= slices_, "the peak is below what is used");
  }

  SlicePool& pool_;
  Taken runs_[kMaxRuns];
  size_t slices_ = 0;
  uint64_t names_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::remember(data, size);
  static constinit SlicePool pool;
  Model model(pool);
  for (fuzz::Stream in(data, size); !in.at_end();) model.step(in);
  model.finish();
  return 0;
}
