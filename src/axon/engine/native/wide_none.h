// No wide tiles: what a machine has whose products are all of a few rows. wide_amx.h has the others.
#pragma once

namespace axon {
namespace {

constexpr int kWideRows = 16;
constexpr int kWideFrom = 1 << 30;     // rows from which a wide product is worth it: never
constexpr int kWideDotFrom = 1 << 30;  // likewise
constexpr int kWideInputs = 16;        // a wide dot takes a multiple of these

struct WideTiles {};

inline void wide_product(const QuantisedRows&, int, const int8_t*, const uint16_t*, int, float*, int, const int8_t*, int) {}
inline void wide_dot(const int8_t*, int, const int8_t*, int, int32_t*) {}

}  // namespace
}  // namespace axon
