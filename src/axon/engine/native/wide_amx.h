// Products of 16 rows with 16 outputs at once, on AMX. Beside tile_avx512.h, which computes fewer rows; same bits.
#pragma once

#include <immintrin.h>

namespace axon {
namespace {

constexpr int kWideRows = 16;
constexpr int kWideFrom = 9;     // rows from which a wide product beats narrow ones
constexpr int kWideDotFrom = 9;  // likewise
constexpr int kWideInputs = kGroup;  // a wide dot takes a multiple of these

// Groups that are multiplied before one is scaled: what a tile stores can be loaded only some time later.
constexpr int kGroupsAhead = 2;

// How the eight tile registers are used: sums in turns of two, inputs and weights in turns of three.
enum Tile { kSums = 0, kInputs = 2, kPanel = 5 };

static_assert(kGroup % 4 == 0 && kGroup <= 64, "a group is one product");
static_assert(kWideDotFrom > kTileRows, "the number of rows tells a wide dot from a narrow one");

// The shapes of the tile registers, for as long as this lives: a thread that has none is cheaper to switch to.
class WideTiles {
 public:
    WideTiles() {
        Shapes shapes{};
        for (int turn = 0; turn < 2; ++turn) shapes.set(kSums + turn, kWideRows, 64);
        for (int turn = 0; turn < 3; ++turn) {
            shapes.set(kInputs + turn, kWideRows, kGroup);
            shapes.set(kPanel + turn, kGroup / 4, 64);
        }
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
AXON_INLINE void multiply_tiles() {
    asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(To), "i"(Rows), "i"(Panel));
}

// The totals of 16 rows and 16 outputs, which the whole numbers of group after group are scaled into.
struct WideTotals {
    __m512 v[kWideRows];

    AXON_INLINE WideTotals() {
#pragma GCC unroll 16
        for (int m = 0; m < kWideRows; ++m) v[m] = _mm512_setzero_ps();
    }

    // Four rows from `Row` on; `scales` goes on to the next four.
    template <int Row>
    AXON_INLINE void add_four(const int32_t* sums, const float*& scales, size_t stride, __m512 output_scales) {
        asm("" : "+r"(scales));  // one address for four rows: with one for each, there are not registers enough
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i) {
            const __m512 sum = _mm512_cvtepi32_ps(_mm512_load_si512(sums + (Row + i) * kLanes));
            const __m512 scaled = _mm512_mul_ps(sum, output_scales);
            v[Row + i] = _mm512_fmadd_ps(scaled, _mm512_set1_ps(scales[i * stride]), v[Row + i]);
        }
        scales += 4 * stride;
    }

    AXON_INLINE void write(float* out, int out_stride) const {
#pragma GCC unroll 16
        for (int m = 0; m < kWideRows; ++m) _mm512_storeu_ps(out + static_cast<size_t>(m) * out_stride, v[m]);
    }
};

// `product` of 16 rows. The rows behind the last are read and computed too; nobody looks at what comes of them.
class WideProduct {
 public:
    AXON_INLINE WideProduct(const QuantisedRows& rows, const int8_t* panel, const uint16_t* panel_scales, int num_groups,
                            const int8_t* ahead, int ahead_lines)
        : values_(rows.values), stride_(rows.stride), scales_(rows.scales), scale_stride_(rows.scale_stride),
          panel_(panel), panel_scales_(panel_scales), num_groups_(num_groups), ahead_(ahead),
          ahead_lines_(ahead_lines * kGroup / 16) {}

    AXON_INLINE void run(float* out, int out_stride) {
        alignas(64) Sums sums;
        WideTotals totals;
        load_panel<0>(0);
        load_inputs<0>(0);
        load_panel<1>(1);
        load_inputs<1>(1);
        begin<0>(sums);
        for (int group = 0; !turns<0>(group, sums, totals);) {
        }
        totals.write(out, out_stride);
    }

 private:
    const int8_t* values_;
    size_t stride_;
    const float* scales_;
    size_t scale_stride_;
    const int8_t* panel_;
    const uint16_t* panel_scales_;
    int num_groups_;
    const int8_t* ahead_;
    int ahead_lines_;

    using Sums = int32_t[kGroupsAhead + 1][kWideRows * kLanes];
    static constexpr int kTurns = (kGroupsAhead + 1) % 4 == 0 ? 12 : 6;  // of two, of three, and of the sums

    // Multiplies the first groups.
    template <int T>
    AXON_INLINE void begin(Sums& sums) {
        if constexpr (T < kGroupsAhead) {
            multiply<T>(T);
            store<T>(T, sums);
            load_panel<T + 2>(T + 2);
            load_inputs<T + 2>(T + 2);
            begin<T + 1>(sums);
        }
    }

    // As many groups as it takes until all registers and buffers have their turn again; returns whether it was the last.
    template <int T>
    AXON_INLINE bool turns(int& group, Sums& sums, WideTotals& totals) {
        if (turn<T>(group, sums, totals)) return true;
        if constexpr (T + 1 < kTurns)
            return turns<T + 1>(group, sums, totals);
        else
            return false;
    }

    // Scales a group while a later one is multiplied and a still later one is loaded.
    template <int T>
    AXON_INLINE bool turn(int& group, Sums& sums, WideTotals& totals) {
        constexpr int kNext = T + kGroupsAhead;
        const __m512 output_scales = load_halves(panel_scales_ + 16 * group).v;
        const int32_t* made = sums[T % (kGroupsAhead + 1)];
        const float* scales = scales_ + group;
        load_panel<kNext + 2>(group + kGroupsAhead + 2);
        totals.template add_four<0>(made, scales, scale_stride_, output_scales);
        load_inputs<kNext + 2>(group + kGroupsAhead + 2);
        totals.template add_four<4>(made, scales, scale_stride_, output_scales);
        multiply<kNext>(group + kGroupsAhead);
        totals.template add_four<8>(made, scales, scale_stride_, output_scales);
        totals.template add_four<12>(made, scales, scale_stride_, output_scales);
        store<kNext>(group + kGroupsAhead, sums);
        for (int line = 0; line < ahead_lines_; ++line, ahead_ += 64) prefetch(ahead_);
        return ++group == num_groups_;
    }

    template <int T>
    AXON_INLINE void load_panel(int group) {
        if (group < num_groups_) load_tile<kPanel + T % 3>(panel_ + 16 * kGroup * group, 64);
    }

    template <int T>
    AXON_INLINE void load_inputs(int group) {
        if (group < num_groups_) load_tile<kInputs + T % 3>(values_ + kGroup * group, stride_);
    }

    template <int T>
    AXON_INLINE void multiply(int group) {
        if (group >= num_groups_) return;
        clear_tile<kSums + T % 2>();
        multiply_tiles<kSums + T % 2, kInputs + T % 3, kPanel + T % 3>();
    }

    template <int T>
    AXON_INLINE void store(int group, Sums& sums) {
        if (group < num_groups_) store_tile<kSums + T % 2>(sums[T % (kGroupsAhead + 1)]);
    }
};

inline void wide_product(const QuantisedRows& rows, const int8_t* panel, const uint16_t* panel_scales, int num_groups,
                         float* out, int out_stride, const int8_t* ahead, int ahead_lines) {
    WideProduct(rows, panel, panel_scales, num_groups, ahead, ahead_lines).run(out, out_stride);
}

// `dot` of 16 rows.
inline void wide_dot(const int8_t* rows, int stride, const int8_t* panel, int num_inputs, int32_t* out) {
    clear_tile<kSums>();
    for (int k = 0; k < num_inputs; k += kGroup) {
        load_tile<kInputs>(rows + k, stride);
        load_tile<kPanel>(panel + 16 * k, 64);
        multiply_tiles<kSums, kInputs, kPanel>();
    }
    store_tile<kSums>(out);
}

}  // namespace
}  // namespace axon
