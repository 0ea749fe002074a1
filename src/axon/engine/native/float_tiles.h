// Products of float32 rows with float32 panels of 16 outputs, kFloatRows rows at most at a time. Knows no model.
//
// Each output is one chain of fused multiply-adds over the inputs in order: the same bits on every machine, and whatever
// rows stand beside it. The tiles of an instruction set have float_product; the number of inputs is a multiple of 4.
#pragma once

namespace axon {
namespace {

using FloatProduct = void (*)(const float*, size_t, const float*, int, float*, int);

struct FloatProducts {
    FloatProduct of[kFloatRows + 1];
};

template <int M>
constexpr void fill(FloatProducts& products) {
    products.of[M] = float_product<M>;
    if constexpr (M > 1) fill<M - 1>(products);
}

constexpr FloatProducts make_float_products() {
    FloatProducts products{};
    fill<kFloatRows>(products);
    return products;
}

constexpr FloatProducts kFloatProducts = make_float_products();

// Even tiles: 5 rows are 3 + 2, not 4 + 1.
inline int float_rows_at_once(int num_rows) {
    const int num_tiles = (num_rows + kFloatRows - 1) / kFloatRows;
    return (num_rows + num_tiles - 1) / num_tiles;
}

// Any number of rows.
inline void multiply_floats(const float* rows, size_t stride, int num_rows, const float* panel, int num_inputs,
                            float* out, int out_stride) {
    for (int row = 0, count; row < num_rows; row += count) {
        count = float_rows_at_once(num_rows - row);
        kFloatProducts.of[count](rows + row * stride, stride, panel, num_inputs,
                                 out + static_cast<size_t>(row) * out_stride, out_stride);
    }
}

}  // namespace
}  // namespace axon
