// Products of any number of rows: cuts them into the tiles that the instruction set has. Knows no model.
#pragma once

namespace axon {
namespace {

using ProductFunction = void (*)(const QuantisedRows&, const int8_t*, const uint16_t*, int, float*, int, const int8_t*,
                                 int);
using DotFunction = void (*)(const int8_t*, int, const int32_t*, const int8_t*, int, int32_t*);
using WeighFunction = void (*)(const int8_t*, int, const float*, int, const uint8_t* const*, size_t, int, float*, int);

struct TileFunctions {
    ProductFunction product[kTileRows + 1];
    DotFunction dot[kTileRows + 1];
    WeighFunction weigh[kTileRows + 1];
};

template <int M>
constexpr void fill(TileFunctions& functions) {
    functions.product[M] = product<M>;
    functions.dot[M] = dot<M>;
    functions.weigh[M] = weigh<M>;
    if constexpr (M > 1) fill<M - 1>(functions);
}

constexpr TileFunctions make_tile_functions() {
    TileFunctions functions{};
    fill<kTileRows>(functions);
    return functions;
}

constexpr TileFunctions kTiles = make_tile_functions();
constexpr int kMostDotsAtOnce = kTileRows > kWideRows ? kTileRows : kWideRows;

inline int smaller(int a, int b) { return a < b ? a : b; }

// Even tiles: 5 rows are 3 + 2, not 4 + 1.
inline int narrow_rows(int num_rows) {
    const int num_tiles = (num_rows + kTileRows - 1) / kTileRows;
    return (num_rows + num_tiles - 1) / num_tiles;
}

// Of so many rows, how many are multiplied next: all that fill wide tiles, or one tile.
inline int rows_at_once(int num_rows) {
    if (num_rows < kWideFrom) return narrow_rows(num_rows);
    return num_rows < kWideRows ? num_rows : num_rows - num_rows % kWideRows;
}

inline int dots_at_once(int num_rows, int num_inputs) {
    const bool wide = num_rows >= kWideDotFrom && num_inputs % kWideInputs == 0;
    return wide ? smaller(num_rows, kWideRows) : narrow_rows(num_rows);
}

inline QuantisedRows rows_from(const QuantisedRows& rows, int first) {
    const size_t row = first, group = row * rows.scale_stride;
    return {rows.values + row * rows.stride, rows.scales + group, rows.starts + group, rows.stride, rows.scale_stride};
}

// `count` comes from rows_at_once or dots_at_once. A wide product writes whole tiles: `count` rounded up to kWideRows.
inline void multiply_tiles(int count, const QuantisedRows& rows, const int8_t* panel, const uint16_t* panel_scales,
                           int num_groups, float* out, int out_stride, const int8_t* ahead, int ahead_lines) {
    if (count >= kWideFrom)
        wide_product(rows, count, panel, panel_scales, num_groups, out, out_stride, ahead, ahead_lines);
    else
        kTiles.product[count](rows, panel, panel_scales, num_groups, out, out_stride, ahead, ahead_lines);
}

inline void dot_tile(int count, const int8_t* rows, int stride, const int32_t* starts, const int8_t* panel,
                     int num_inputs, int32_t* out) {
    if (count > kTileRows)
        wide_dot(rows, stride, panel, num_inputs, out);
    else
        kTiles.dot[count](rows, stride, starts, panel, num_inputs, out);
}

// A block's values have a scale of their own for each row, so that a wide tile would be scaled after 16 inputs: that is
// no faster.
inline void weigh_tile(int count, const int8_t* weights, int stride, const float* scales, int scale_stride,
                       const uint8_t* const* blocks, size_t offset, int num_blocks, float* out, int out_stride) {
    kTiles.weigh[count](weights, stride, scales, scale_stride, blocks, offset, num_blocks, out, out_stride);
}

}  // namespace
}  // namespace axon
