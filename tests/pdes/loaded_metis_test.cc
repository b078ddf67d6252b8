// METIS is loaded when there is a graph to divide: what is found, and what is not.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "engine/owners.h"
#include "pdes/metis.h"
#include "simulations.h"

namespace {
bool none_to_load = false;
}

extern "C" void* dlopen(const char* name, int flags) noexcept {
  static auto* const next = reinterpret_cast<decltype(&dlopen)>(dlsym(RTLD_NEXT, "dlopen"));
  return next(none_to_load ? "/nowhere" : name, flags);
}

namespace pdes {
namespace {

using Owners = std::vector<std::uint16_t>;

LpGraph ring(LpId lps) {
  return graph_of(lps, [=](LpId id, const auto& to) { to((id + 1) % lps); });
}

struct LoadedMetis : testing::Test {
  static void name(const char* library) { setenv("HM_METIS_LIBRARY", library, 1); }
  void TearDown() override {
    unsetenv("HM_METIS_LIBRARY");
    none_to_load = false;
  }
};

TEST_F(LoadedMetis, HasIndicesOf64BitsIfItIsBuiltSo) {
  name(WIDE_METIS);
  EXPECT_EQ(metis_partitioner()(ring(5), 2), (Owners{0, 1, 0, 1, 0}));
  EXPECT_EQ(test::error_of([] { metis_partitioner()(ring(6), 2); }),
            "METIS has not enough memory to divide the graph of the LPs");
  EXPECT_EQ(test::error_of([] { metis_partitioner()(ring(99), 9); }), "METIS could not divide the graph of the LPs");
}

TEST_F(LoadedMetis, DividesOneGraphAtATime) {
  name(WIDE_METIS);
  std::array<std::string, 4> errors;
  {
    std::vector<std::jthread> simulations;
    for (std::string& error : errors)
      simulations.emplace_back([&error] { error = test::error_of([] { metis_partitioner()(ring(8), 2); }); });
  }
  for (const std::string& error : errors) EXPECT_EQ(error, "no error");
}

TEST_F(LoadedMetis, IsMissedInOneLine) {
  none_to_load = true;
  EXPECT_EQ(test::error_of([] { metis_partitioner()(ring(5), 2); }),
            "dividing the graph of the LPs among threads needs METIS: install libmetis5 (Debian, Ubuntu) or metis (Fedora, "
            "conda)");
}

TEST_F(LoadedMetis, IsWhatItsVariableNames) {
  name("/nowhere/libmetis.so");
  EXPECT_EQ(test::error_of([] { metis_partitioner()(ring(5), 2); }),
            "METIS cannot be loaded as HM_METIS_LIBRARY says: /nowhere/libmetis.so: cannot open shared object file: No such "
            "file or directory");
  name("libm.so.6");
  EXPECT_EQ(test::error_of([] { metis_partitioner()(ring(5), 2); }),
            "METIS cannot be used: it has no METIS_SetDefaultOptions");
}

}  // namespace
}  // namespace pdes
