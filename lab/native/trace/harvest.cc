#include "harvest.h"

#include <elf.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>

#include "pack.h"
#include "text.h"

namespace fs = std::filesystem;

namespace hm::trace {
namespace {

// The file that the shell would run; empty if there is none.
fs::path executable(const std::string& program) {
  if (program.find('/') != std::string::npos) return program;
  const char* path = getenv("PATH");
  for (const std::string& folder : split(path == nullptr ? "/usr/bin:/bin" : path, ':')) {
    if (access((fs::path(folder) / program).c_str(), X_OK) == 0) return fs::path(folder) / program;
  }
  return {};
}

// A static program names no loader, so nothing can be preloaded.
bool is_static(const fs::path& program) {
  std::ifstream file(program, std::ios::binary);
  Elf64_Ehdr header{};
  file.read(reinterpret_cast<char*>(&header), sizeof header);
  bool is_elf = file && std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_ident[EI_CLASS] == ELFCLASS64;
  if (!is_elf) return false;
  for (unsigned index = 0; index < header.e_phnum; ++index) {
    Elf64_Phdr segment{};
    file.seekg(static_cast<std::streamoff>(header.e_phoff + uint64_t{index} * header.e_phentsize));
    file.read(reinterpret_cast<char*>(&segment), sizeof segment);
    if (segment.p_type == PT_INTERP) return false;
  }
  return bool(file);
}

struct Saved {
  Header header;
  uint64_t bytes = 0;
};

Saved save(Spool spool, const fs::path& file) {
  Saved saved;
  Writer writer;
  saved.header = pack(spool, writer);
  if (saved.header.operations() == 0) return saved;
  { Spool done = std::move(spool); }  // makes room for the file on a full disk
  saved.bytes = writer.save(file, saved.header);
  return saved;
}

void say_result(const Saved& saved, const fs::path& file, size_t others) {
  const Header& header = saved.header;
  std::string beside;
  if (others > 0) beside = "; beside it " + std::to_string(others) + " further process" + (others == 1 ? "" : "es");
  std::fprintf(stderr, "hmalloc trace: %s operations, %u thread%s, %s requested: %s, %s%s\n",
               grouped(header.operations()).c_str(), header.threads, header.threads == 1 ? "" : "s",
               bytes_text(header.requested).c_str(), file.c_str(), bytes_text(saved.bytes).c_str(), beside.c_str());
  if (!header.stopped.empty()) {
    std::fprintf(stderr, "hmalloc trace: recording stopped before the program ended: %s\n",
                 header.stopped == "limit" ? "the limit is reached (--limit)" : header.stopped.c_str());
  }
}

// Oldest first.
std::vector<Spool> open_all(const fs::path& folder) {
  std::vector<Spool> spools;
  for (const auto& entry : fs::directory_iterator(folder)) {
    // Empty: the process was killed when it had just made the file.
    if (entry.file_size() >= sizeof(SpoolHeader)) spools.emplace_back(entry.path());
  }
  std::sort(spools.begin(), spools.end(),
            [](const Spool& a, const Spool& b) { return a.header().started < b.header().started; });
  return spools;
}

}  // namespace

bool harvest(const fs::path& folder, const fs::path& file, pid_t pid) {
  std::vector<Spool> spools = open_all(folder);
  auto of_program = [pid](const Spool& spool) { return spool.header().pid == pid; };
  auto last = std::find_if(spools.rbegin(), spools.rend(), of_program);
  size_t main = last == spools.rend() ? spools.size() : static_cast<size_t>(spools.rend() - last) - 1;
  fs::path stem = file.extension() == kSuffix ? fs::path(file).replace_extension() : file;
  std::map<pid_t, int> programs;
  size_t others = 0;
  Saved saved;
  for (size_t index = 0; index < spools.size(); ++index) {
    if (index == main) continue;
    pid_t process = spools[index].header().pid;
    int number = ++programs[process];
    std::string name = stem.string() + "." + std::to_string(process) + (number > 1 ? "." + std::to_string(number) : "");
    if (save(std::move(spools[index]), name + kSuffix).header.operations() > 0) ++others;
  }
  if (main < spools.size()) saved = save(std::move(spools[main]), file);
  if (saved.header.operations() == 0) return false;
  say_result(saved, file, others);
  return true;
}

const char* why_nothing(const std::string& program) {
  return is_static(executable(program)) ? "it is linked statically"
                                        : "it has a malloc of its own, is setuid, or never allocates";
}

}  // namespace hm::trace
