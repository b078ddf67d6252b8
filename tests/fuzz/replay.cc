// Runs a fuzzer without libFuzzer: on files, on folders of files (one process, in the order of their names), or on random
// inputs that are pieces of the files and of chance.  Any compiler.  An input that takes too long is a finding.
//   replay FILE|FOLDER...            each file once
//   replay --history FILE            what a process that died had been given last
//   replay --random SECONDS SEED FILE|FOLDER...
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "fuzz.h"

extern "C" [[gnu::weak]] int LLVMFuzzerInitialize(int*, char***);

namespace {

using Input = std::vector<uint8_t>;

std::vector<std::filesystem::path> files(char** names, char** end) {
  std::vector<std::filesystem::path> found;
  for (; names != end; ++names) {
    if (!std::filesystem::is_directory(*names)) {
      found.emplace_back(*names);
      continue;
    }
    size_t first = found.size();
    for (const auto& entry : std::filesystem::recursive_directory_iterator(*names))
      if (entry.is_regular_file()) found.push_back(entry.path());
    std::sort(found.begin() + static_cast<std::ptrdiff_t>(first), found.end());
  }
  return found;
}

Input read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    fprintf(stderr, "replay: %s cannot be read\n", path.c_str());
    exit(2);
  }
  return Input(std::istreambuf_iterator<char>(file), {});
}

// Of the processor's time, which a busy machine does not use up: inputs take milliseconds, under sanitizers a second.
constexpr int kLongestSeconds = 20;

void took_too_long(int) {
  constexpr char kLine[] = "fuzz: an input does not end\n";
  if (write(STDERR_FILENO, kLine, sizeof kLine - 1) < 0) {}
  abort();
}

// The data ends where its memory does, so that AddressSanitizer sees who reads on.
void run(const Input& input) {
  itimerval limit = {{0, 0}, {kLongestSeconds, 0}};
  setitimer(ITIMER_PROF, &limit, nullptr);
  auto data = std::make_unique<uint8_t[]>(input.size());
  std::copy(input.begin(), input.end(), data.get());
  LLVMFuzzerTestOneInput(data.get(), input.size());
}

int replay_history(const char* name) {
  Input bytes = read(name);
  auto history = std::make_unique<fuzz::History>();
  memcpy(history.get(), bytes.data(), std::min(bytes.size(), sizeof(fuzz::History)));
  std::sort(std::begin(history->entries), std::end(history->entries),
            [](const auto& a, const auto& b) { return a.number < b.number; });
  for (const auto& entry : history->entries)
    if (entry.number != 0) run(Input(entry.data, entry.data + entry.size));
  return 0;
}

Input random_input(const std::vector<Input>& seeds, std::mt19937_64& random) {
  Input made;
  for (size_t pieces = 1 + random() % 4; pieces > 0; --pieces) {
    if (seeds.empty() || random() % 3 == 0) {
      for (size_t n = random() % 200; n > 0; --n) made.push_back(static_cast<uint8_t>(random()));
    } else {
      const Input& seed = seeds[random() % seeds.size()];
      size_t from = seed.empty() ? 0 : random() % seed.size();
      made.insert(made.end(), seed.begin() + static_cast<std::ptrdiff_t>(random() % 2 == 0 ? 0 : from), seed.end());
    }
  }
  for (size_t changes = random() % 8; changes > 0 && !made.empty(); --changes)
    made[random() % made.size()] = static_cast<uint8_t>(random());
  made.resize(std::min(made.size(), fuzz::History::kLongest));
  return made;
}

int run_random(double seconds, unsigned seed, const std::vector<std::filesystem::path>& paths) {
  std::vector<Input> seeds;
  for (const auto& path : paths) seeds.push_back(read(path));
  std::mt19937_64 random(seed);
  auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  size_t runs = 0;
  for (; std::chrono::steady_clock::now() < end; ++runs) run(random_input(seeds, random));
  printf("replay: %zu random inputs\n", runs);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  signal(SIGPROF, took_too_long);
  if (LLVMFuzzerInitialize != nullptr) LLVMFuzzerInitialize(&argc, &argv);
  if (argc == 3 && strcmp(argv[1], "--history") == 0) return replay_history(argv[2]);
  if (argc >= 4 && strcmp(argv[1], "--random") == 0)
    return run_random(atof(argv[2]), static_cast<unsigned>(atol(argv[3])), files(argv + 4, argv + argc));
  auto paths = files(argv + 1, argv + argc);
  for (const auto& path : paths) {
    fprintf(stderr, "%s\n", path.c_str());
    run(read(path));
  }
  printf("replay: %zu inputs\n", paths.size());
  return paths.empty() ? 2 : 0;
}
