#include "base/address_map.h"

namespace hm {
constinit std::array<ChunkKind, AddressMap::kUnits> AddressMap::units_{};
}
