// What a preloaded baseline says of itself at the start and at the end of a program.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <sstream>
#include <string>

namespace {

class Preloaded : public testing::TestWithParam<std::string> {
 protected:
  // What a shell command says, on both descriptors, under the preloaded library.
  std::string said(const std::string& command) {
    std::string line = "env LD_PRELOAD=" HM_LIBRARIES "/lib" + name_ + ".so " + command + " 2>&1", text;
    FILE* pipe = popen(line.c_str(), "r");
    for (int c; (c = fgetc(pipe)) != EOF;) text.push_back(static_cast<char>(c));
    pclose(pipe);
    return text;
  }
  static std::string variable_of(std::string name) {
    name = name.substr(0, name.find('-')) + "_STATS_FILE";
    std::transform(name.begin(), name.end(), name.begin(), ::toupper);
    return name;
  }

  const std::string name_ = GetParam(), variable_ = variable_of(name_);
};

std::vector<std::string> names() {
  std::istringstream words(HM_NAMES);
  return {std::istream_iterator<std::string>(words), {}};
}

}  // namespace

TEST_P(Preloaded, AppendsALineOfCountersForEachProcess) {
  std::string file = testing::TempDir() + name_ + "_" + std::to_string(getpid());
  EXPECT_EQ(said(variable_ + "=" + file + " sh -c '/bin/true & /bin/true & /bin/true; wait; kill -9 $$' >/dev/null"), "");
  std::string lines = said("cat " + file), start = "{\"allocator\":\"" + name_ + "\",\"mapped\":";
  int count = 0;
  for (size_t at = 0; (at = lines.find(start, at)) != std::string::npos; ++at) ++count;
  EXPECT_EQ(count, 3) << lines;
  EXPECT_TRUE(name_ != "one_lock" || lines.find(",\"calls\":") != std::string::npos) << lines;
  remove(file.c_str());
}

TEST_P(Preloaded, SaysWhenTheFileCannotBeUsed) {
  EXPECT_EQ(said(variable_ + "=/no/such/folder true"), name_ + ": cannot write " + variable_ + "=/no/such/folder\n");
  EXPECT_EQ(said(variable_ + "=/" + std::string(300, 'x') + " true"), name_ + ": " + variable_ + " is too long; ignored\n");
}

TEST_P(Preloaded, SaysNothingUnasked) { EXPECT_EQ(said("true"), ""); }

INSTANTIATE_TEST_SUITE_P(, Preloaded, testing::ValuesIn(names()), [](const auto& of) {
  std::string name = of.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});
