#include "core/description.h"

#include "base/report.h"
#include "base/zeros.h"
#include "core/block_edges.h"
#include "core/superblock.h"

namespace hm {
namespace {

// In the default library a block in a thread's cache is TAKEN, too; in the others one that no program has had yet may be CACHED.
const char* word_for(BlockState state) noexcept {
  if (state.is_free()) return "free";
  if (state.is_cached()) return "cached";
  return kChecked || state.is_sampled() ? "in use" : "in use or cached";
}

void* block_at(const Superblock& sb, size_t i) noexcept { return sb.start + i * sb.block_size; }
uint64_t offset_in(const void* block, const void* pointer) noexcept { return address_of(pointer) - address_of(block); }

void say_state(FdWriter& line, const Superblock& sb, size_t i) noexcept {
  BlockState state = sb.states[i].as_it_was();
  line << word_for(state);
  if (!kHardened || state.is_free() || state.is_cached()) return;
  BlockEdges edges(block_at(sb, i), sb.block_size);
  if (edges.is_clear()) return;  // it is about to be handed out, or was just freed
  edges.is_whole() ? line << " (" << uint64_t{edges.size()} << " bytes asked for)" : line << " (its edge overwritten)";
}

}  // namespace

const void* describe_small(const void* pointer) noexcept {
  const Superblock& sb = Superblock::of(address_of(pointer));
  size_t i = BlockPlace(sb, address_of(pointer)).index();
  FdWriter line(2);
  if (i >= sb.blocks) {
    line << "  behind the last of the blocks of " << uint64_t{sb.block_size} << " bytes there\n";
    return nullptr;
  }
  line << "  byte " << offset_in(block_at(sb, i), pointer) << " of the block of " << uint64_t{sb.block_size} << " bytes at "
       << block_at(sb, i) << ": ";
  say_state(line, sb, i);
  if (i > 0) say_state(line << "; in front of it one ", sb, i - 1);
  if (i + 1 < sb.blocks) say_state(line << "; behind it one ", sb, i + 1);
  line << "\n";
  return block_at(sb, i);
}

void describe_written(const void* block) noexcept {
  size_t size = Superblock::of(address_of(block)).block_size;
  const char* changed = first_not_zero(static_cast<const char*>(block), size);
  FdWriter line(2);
  line << "  the block of " << uint64_t{size} << " bytes was freed";
  if (changed != nullptr) line << ", and byte " << offset_in(block, changed) << " of it written since";
  line << "\n";
}

}  // namespace hm
