// Products of 16 rows with 16 outputs at once, on AMX. Beside tile_avx512.h, which computes fewer rows; same bits.
#pragma once

#include <immintrin.h>

namespace axon {
namespace {

constexpr int kWideRows = 16;
constexpr int kWideFrom = 9;         // rows from which a wide product beats narrow ones
constexpr int kWideDotFrom = 9;      // likewise
constexpr int kWideInputs = kGroup;  // a wide dot takes a multiple of these

enum Tile { kSums, kInputs, kPanel };

// Converts integers to floats by a magic number: from 2^23 to 2^24 neighbouring floats are neighbouring integers, so that
// adding n to the bits of 1.5 x 2^23 adds n to its value, for |n| <= 2^22.
constexpr float kOffset = 12582912.0f;
constexpr int32_t kOffsetBits = 0x4B400000;

static_assert(kGroup * 128 * 128 < 1 << 22, "a group's sum stays within that");
static_assert(kGroup % 4 == 0 && kGroup <= 64, "a group is one product");
static_assert(kWideDotFrom > kTileRows, "the number of rows tells a wide dot from a narrow one");

// The shapes of the tile registers, for as long as this lives: a thread that has none is cheaper to switch to.
class WideTiles {
 public:
    WideTiles() {
        Shapes shapes{};
        shapes.set(kSums, kWideRows, 64);
        shapes.set(kInputs, kWideRows, kGroup);
        shapes.set(kPanel, kGroup / 4, 64);
        asm volatile("ldtilecfg %0" ::"m"(shapes));
    }
    ~WideTiles() { asm volatile("tilerelease" ::: "memory"); }
    WideTiles(const WideTiles&) = delete;
    WideTiles& operator=(const WideTiles&) = delete;

 private:
    struct alignas(64) Shapes {
        uint8_t palette = 1, first_row = 0, reserved[14] = {};
        uint16_t row_bytes[16] = {};
        uint8_t rows[16] = {};

        void set(int tile, int num_rows, int num_bytes) {
            rows[tile] = static_cast<uint8_t>(num_rows);
            row_bytes[tile] = static_cast<uint16_t>(num_bytes);
        }
    };
};

// In assembly, because the intrinsics do not say that they read memory.
template <int T>
AXON_INLINE void load_tile(const void* from, size_t stride) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(stride), "i"(T) : "memory");
}

template <int T>
AXON_INLINE void store_tile(void* to) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(size_t{64}), "i"(T) : "memory");
}

template <int T>
AXON_INLINE void clear_tile() {
    asm volatile("tilezero %%tmm%c0" ::"i"(T));
}

// sums[row][output] += 4 inputs of the row with 4 weights of the output, both signed, for all of the tiles' columns.
template <int To, int Rows, int Panel>
AXON_INLINE void multiply_registers() {
    asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(To), "i"(Rows), "i"(Panel));
}

// The totals of 16 rows and 16 outputs, which the whole numbers of group after group are scaled into. After a tile
// instruction, 512-bit multiplications run at half their rate for some 40 ns; integer additions do not. So an addition of the
// offset replaces the conversion, and a fused multiplication subtracts it again: `offsets` are minus the offset times the
// scales, exactly, and the sum times its scale is rounded once. The bits are those of a conversion.
struct WideTotals {
    __m512 v[kWideRows];

    AXON_INLINE WideTotals() {
#pragma GCC unroll 16
        for (int m = 0; m < kWideRows; ++m) v[m] = _mm512_setzero_ps();
    }

    AXON_INLINE void add(const int32_t* sums, const float* scales, size_t stride, __m512 output_scales) {
        const __m512 offsets = _mm512_mul_ps(output_scales, _mm512_set1_ps(-kOffset));
        add_four<0>(sums, scales, stride, output_scales, offsets);
        add_four<4>(sums, scales, stride, output_scales, offsets);
        add_four<8>(sums, scales, stride, output_scales, offsets);
        add_four<12>(sums, scales, stride, output_scales, offsets);
    }

    AXON_INLINE void write(float* out, int out_stride) const {
#pragma GCC unroll 16
        for (int m = 0; m < kWideRows; ++m) _mm512_storeu_ps(out + static_cast<size_t>(m) * out_stride, v[m]);
    }

 private:
    // Four rows from `Row` on; `scales` goes on to the next four.
    template <int Row>
    AXON_INLINE void add_four(const int32_t* sums, const float*& scales, size_t stride, __m512 output_scales,
                              __m512 offsets) {
        asm("" : "+r"(scales));  // one address for four rows: with one for each, there are not registers enough
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i) {
            const __m512i sum = _mm512_load_si512(sums + (Row + i) * kLanes);
            const __m512 moved = _mm512_castsi512_ps(_mm512_add_epi32(sum, _mm512_set1_epi32(kOffsetBits)));
            const __m512 scaled = _mm512_fmadd_ps(moved, output_scales, offsets);
            v[Row + i] = _mm512_fmadd_ps(scaled, _mm512_set1_ps(scales[i * stride]), v[Row + i]);
        }
        scales += 4 * stride;
    }
};

// `product` of any number of rows, 16 by 16. The rows behind the last are read and computed too; nobody looks at what comes
// of them. A software pipeline: while product i is scaled, i + 1 is stored, i + 2 multiplied and i + 3 loaded, also across
// the border between two tiles of 16 rows.
class WideProduct {
 public:
    AXON_INLINE WideProduct(const QuantisedRows& rows, int num_rows, const int8_t* panel, const uint16_t* panel_scales,
                            int num_groups, const int8_t* ahead, int ahead_lines)
        : values_(rows.values), stride_(rows.stride), scales_(rows.scales), scale_stride_(rows.scale_stride),
          panel_(panel), panel_scales_(panel_scales), num_groups_(num_groups),
          num_products_((num_rows + kWideRows - 1) / kWideRows * num_groups), ahead_(ahead),
          ahead_end_(ahead + (ahead_lines > 0 ? 16 * kGroup * num_groups : 0)), ahead_lines_(ahead_lines * kGroup / 16) {}

    AXON_INLINE void run(float* out, int out_stride) {
        alignas(64) Sums sums;
        load(0);
        multiply(0);
        store(0, sums[0]);
        load(1);
        multiply(1);
        load(2);
        WideTotals totals;
        for (int done = 0; done < num_products_; ++done) turn(done, sums, totals, out, out_stride);
    }

 private:
    const int8_t* values_;
    const size_t stride_;
    const float* scales_;
    const size_t scale_stride_;
    const int8_t* const panel_;
    const uint16_t* const panel_scales_;
    const int num_groups_, num_products_;
    const int8_t* ahead_;
    const int8_t* const ahead_end_;
    const int ahead_lines_;
    int loaded_ = 0, scaled_ = 0;  // groups of the 16 rows that are at hand there

    using Sums = int32_t[2][kWideRows * kLanes];

    // Scales product number `done`.
    AXON_INLINE void turn(int done, Sums& sums, WideTotals& totals, float*& out, int out_stride) {
        store(done + 1, sums[(done + 1) % 2]);
        multiply(done + 2);
        load(done + 3);
        totals.add(sums[done % 2], scales_ + scaled_, scale_stride_, load_halves(panel_scales_ + 16 * scaled_).v);
        if (ahead_ < ahead_end_)
            for (int line = 0; line < ahead_lines_; ++line, ahead_ += 64) prefetch(ahead_);
        if (++scaled_ == num_groups_) {
            totals.write(out, out_stride);
            totals = WideTotals();
            out += static_cast<size_t>(kWideRows) * out_stride;
            scales_ += kWideRows * scale_stride_;
            scaled_ = 0;
        }
    }

    AXON_INLINE void load(int product) {
        if (product >= num_products_) return;
        load_tile<kInputs>(values_ + kGroup * loaded_, stride_);
        load_tile<kPanel>(panel_ + 16 * kGroup * loaded_, 64);
        if (++loaded_ == num_groups_) {
            values_ += kWideRows * stride_;
            loaded_ = 0;
        }
    }

    AXON_INLINE void multiply(int product) {
        if (product >= num_products_) return;
        clear_tile<kSums>();
        multiply_registers<kSums, kInputs, kPanel>();
    }

    AXON_INLINE void store(int product, int32_t* sums) {
        if (product < num_products_) store_tile<kSums>(sums);
    }
};

inline void wide_product(const QuantisedRows& rows, int num_rows, const int8_t* panel, const uint16_t* panel_scales,
                         int num_groups, float* out, int out_stride, const int8_t* ahead, int ahead_lines) {
    WideProduct(rows, num_rows, panel, panel_scales, num_groups, ahead, ahead_lines).run(out, out_stride);
}

// `dot` of 16 rows.
inline void wide_dot(const int8_t* rows, int stride, const int8_t* panel, int num_inputs, int32_t* out) {
    clear_tile<kSums>();
    for (int k = 0; k < num_inputs; k += kGroup) {
        load_tile<kInputs>(rows + k, stride);
        load_tile<kPanel>(panel + 16 * k, 64);
        multiply_registers<kSums, kInputs, kPanel>();
    }
    store_tile<kSums>(out);
}

}  // namespace
}  // namespace axon
