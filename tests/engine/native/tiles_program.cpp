// Prints what an instruction set's tiles compute of fixed numbers, as a digest for each number of rows. Compiled once for
// each set, like step.cpp; programs of two sets must print the same.

#include <cstdio>
#include <vector>

#if defined(__AMX_INT8__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "model.h"

#include AXON_TILE
#include AXON_WIDE

#include "tiles.h"
#include "float_tiles.h"

namespace axon {
namespace {

constexpr int kMostRows = 52, kRowsHere = 64, kGroups = 5, kRowInputs = kGroups * kGroup, kBlocks = 7, kDim = 64;

uint32_t state = 1;

uint32_t random_bits() {
    state = state * 1664525u + 1013904223u;
    return state >> 8;
}

// -127 to 127, and often at the ends.
int8_t random_byte() {
    const uint32_t bits = random_bits();
    return static_cast<int8_t>(bits % 5 == 0 ? 127 : bits % 5 == 1 ? -127 : static_cast<int>(bits / 5 % 255) - 127);
}

float random_scale() { return static_cast<float>(random_bits() % 10000 + 1) * 1.7e-5f; }

template <class T>
void print(const char* what, int num_rows, const std::vector<T>& values, size_t count) {
    uint64_t digest = 14695981039346656037ull;
    const auto* bytes = reinterpret_cast<const uint8_t*>(values.data());
    for (size_t i = 0; i < count * sizeof(T); ++i) digest = (digest ^ bytes[i]) * 1099511628211ull;
    std::printf("%s %d %016llx\n", what, num_rows, static_cast<unsigned long long>(digest));
}

struct Numbers {
    std::vector<int8_t> rows, panel;
    std::vector<float> scales;
    std::vector<uint16_t> panel_scales;
    std::vector<int32_t> starts;

    Numbers() {
        for (int i = 0; i < kRowsHere * kRowInputs; ++i) rows.push_back(random_byte());
        for (int i = 0; i < kRowInputs * kLanes; ++i) panel.push_back(random_byte());
        for (int i = 0; i < kRowsHere * kGroups; ++i) scales.push_back(random_scale());
        for (int i = 0; i < kGroups * kLanes; ++i) panel_scales.push_back(static_cast<uint16_t>(0x3c00 + random_bits() % 512));
        for (int i = 0; i < kRowsHere * kGroups; ++i) starts.push_back(start_of(rows.data() + i * kGroup, kGroup));
    }
};

void print_products(Numbers& numbers, int num_groups) {
    const QuantisedRows rows{numbers.rows.data(), numbers.scales.data(), numbers.starts.data(), kRowInputs, kGroups};
    for (int num_rows = 1; num_rows <= kMostRows; ++num_rows) {
        std::vector<float> out(kRowsHere * kLanes);
        for (int row = 0, count; row < num_rows; row += count) {
            count = rows_at_once(num_rows - row);
            multiply_tiles(count, rows_from(rows, row), numbers.panel.data(), numbers.panel_scales.data(), num_groups,
                           out.data() + row * kLanes, kLanes, numbers.panel.data(), row % 3 ? 2 : 0);
        }
        print("product", num_rows, out, static_cast<size_t>(num_rows) * kLanes);
    }
}

void print_dots(Numbers& numbers) {
    std::vector<int32_t> starts;
    for (int row = 0; row < kRowsHere; ++row) starts.push_back(start_of(numbers.rows.data() + row * kDim, kDim));
    for (int num_rows = 1; num_rows <= kMostRows; ++num_rows) {
        std::vector<int32_t> out(kRowsHere * kLanes);
        for (int row = 0, count; row < num_rows; row += count) {
            count = dots_at_once(num_rows - row, kDim);
            dot_tile(count, numbers.rows.data() + row * kDim, kDim, starts.data() + row, numbers.panel.data(), kDim,
                     out.data() + row * kLanes);
        }
        print("dot", num_rows, out, static_cast<size_t>(num_rows) * kLanes);
    }
}

void print_weighed() {
    std::vector<int8_t> weights;
    std::vector<float> scales;
    std::vector<std::vector<uint8_t>> blocks(kBlocks);
    std::vector<const uint8_t*> starts;
    for (int i = 0; i < kRowsHere * kBlocks * kLanes; ++i) weights.push_back(static_cast<int8_t>(random_bits() % 128));
    for (int i = 0; i < kRowsHere * kBlocks; ++i) scales.push_back(random_scale());
    for (auto& block : blocks) {
        for (int i = 0; i < 256; ++i) block.push_back(static_cast<uint8_t>(random_byte()));
        starts.push_back(block.data());
    }
    for (int num_rows = 1; num_rows <= kMostRows; ++num_rows) {
        std::vector<float> out(kRowsHere * kLanes);
        for (int row = 0, count; row < num_rows; row += count) {
            count = narrow_rows(num_rows - row);
            weigh_tile(count, weights.data() + row * kBlocks * kLanes, kBlocks * kLanes, scales.data() + row * kBlocks,
                       kBlocks, starts.data(), 0, kBlocks, out.data() + row * kLanes, kLanes);
        }
        print("weigh", num_rows, out, static_cast<size_t>(num_rows) * kLanes);
    }
}

void print_floats() {
    constexpr int kInputs = 52, kStride = 60;
    std::vector<float> rows, panel;
    for (int i = 0; i < kMostRows * kStride; ++i) rows.push_back(random_scale() * static_cast<float>(random_byte()));
    for (int i = 0; i < kInputs * kLanes; ++i) panel.push_back(random_scale() * static_cast<float>(random_byte()));
    for (int num_rows = 1; num_rows <= kMostRows; ++num_rows) {
        std::vector<float> out(kMostRows * kLanes);
        multiply_floats(rows.data(), kStride, num_rows, panel.data(), kInputs, out.data(), kLanes);
        print("floats", num_rows, out, static_cast<size_t>(num_rows) * kLanes);
    }
}

}  // namespace
}  // namespace axon

int main() {
#if defined(__AMX_INT8__)
    if (syscall(SYS_arch_prctl, 0x1023, 18) != 0) return 1;
#endif
    [[maybe_unused]] const axon::WideTiles tiles;
    axon::Numbers numbers;
    for (int num_groups = 1; num_groups <= axon::kGroups; ++num_groups) axon::print_products(numbers, num_groups);
    axon::print_dots(numbers);
    axon::print_weighed();
    axon::print_floats();
}
