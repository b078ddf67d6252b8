// A build without METIS says so.
#include <gtest/gtest.h>

#include "pdes/metis.h"
#include "simulations.h"

namespace pdes {
namespace {

TEST(WithoutMetis, TheGraphIsRefused) {
  EXPECT_EQ(test::error_of([] { metis_partitioner(); }),
            "this program was built without METIS, and cannot divide the graph of the LPs among threads");
}

}  // namespace
}  // namespace pdes
