// The file of a checkpoint: a magic, a version, then blocks, each with its size and a checksum.  A new one is written beside
// the old one, brought to the disk and renamed, so a crash leaves one of the two.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace pdes {

using ByteBlock = std::vector<std::byte>;

// All throw Error with one line that names the file.
void write_checkpoint_file(const std::string& path, std::span<const ByteBlock> blocks);
// Whether a file can be written there, as far as one can know; leaves nothing behind.
void try_checkpoint_file(const std::string& path);
ByteBlock read_file(const std::string& path);
// The blocks of a file's bytes, which must stay.  Any change of the bytes is noticed, except with a chance of 1 in 2^64, and
// except that blocks may be missing at the end.
std::vector<std::span<const std::byte>> blocks_of(std::span<const std::byte> file, const std::string& path);

}  // namespace pdes
