#include "base/address_map.h"

namespace hm {
constinit std::array<uint8_t, AddressMap::kUnits> AddressMap::units_{};
}
