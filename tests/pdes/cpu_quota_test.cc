#include "engine/cpu_quota.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace pdes {
namespace {

// A folder of files that say what those of the system would.
struct CpuQuota : testing::Test {
  std::string root = testing::TempDir() + "pdes_groups_" + std::to_string(getpid()), membership = root + "/membership";
  CpuQuota() { std::filesystem::create_directories(root); }
  ~CpuQuota() override { std::filesystem::remove_all(root); }
  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(root + path).parent_path());
    std::ofstream(root + path) << text;
  }
  unsigned quota() const { return cpu_quota(membership.c_str(), root.c_str()); }
};

TEST_F(CpuQuota, NoneIsNone) {
  EXPECT_EQ(quota(), 0u);
  write("/membership", "nonsense\n0::/a/b\n:\n4:cpuset:/x\n");
  EXPECT_EQ(quota(), 0u);
  write("/a/b/cpu.max", "max 100000\n");
  write("/a/cpu.max", "1000 0\n");
  write("/cpu/x/cpu.cfs_quota_us", "100000\n");
  write("/cpu/x/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota(), 0u) << "cpuset is another controller";
}

TEST_F(CpuQuota, TheLeastOfAllAboveIsRoundedUp) {
  write("/membership", "0::/a/b\n");
  write("/a/cpu.max", "250000 100000\n");
  EXPECT_EQ(quota(), 3u);
  write("/a/b/cpu.max", "20000 10000\n");
  EXPECT_EQ(quota(), 2u);
  write("/cpu.max", "1000 100000\n");
  EXPECT_EQ(quota(), 1u);
}

TEST_F(CpuQuota, Version1NamesTheController) {
  write("/membership", "9:name=systemd:/x\n4:cpu,cpuacct:/docker/0123:4\n0::/\n");
  write("/cpu/cpu.cfs_quota_us", "-1\n");
  write("/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota(), 0u);
  write("/cpu/docker/0123:4/cpu.cfs_quota_us", "150000\n");
  write("/cpu/docker/0123:4/cpu.cfs_period_us", "50000\n");
  EXPECT_EQ(quota(), 3u);
  write("/cpu/cpu.cfs_quota_us", "200000\n");
  EXPECT_EQ(quota(), 2u) << "a container finds its own root";
}

}  // namespace
}  // namespace pdes
