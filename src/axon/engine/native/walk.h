// One thread's way through a step: loops shared with the others, rows as int8, products. Knows no layer.
#pragma once

namespace axon {
namespace {

inline const uint16_t* scales_of(const Linear& linear, int panel) {
    return linear.scales + static_cast<size_t>(panel) * (linear.num_inputs / kGroup) * kLanes;
}

// A float of which only the upper half is kept.
inline float from_half(uint16_t upper) {
    const uint32_t bits = static_cast<uint32_t>(upper) << 16;
    float result;
    __builtin_memcpy(&result, &bits, 4);
    return result;
}

// 1 / root mean square of the first `count` of `padded` numbers; the padding is zeros.
inline float inverse_rms(const float* x, int count, int padded, float epsilon) {
    Lanes squares = splat(0);
    for (int i = 0; i < padded; i += kLanes) squares = fma(load(x + i), load(x + i), squares);
    return 1.0f / __builtin_sqrtf(sum(squares) / static_cast<float>(count) + epsilon);
}

class Walk {
 public:
    Walk(const Model& model, const Step& step, int thread)
        : model(model), shape(model.shape), step(step), scratch(step.scratch[thread]),
          loops_(step.counters, step.counter_stride, step.num_threads, thread) {}

    const Model& model;
    const Shape& shape;
    const Step& step;
    Scratch& scratch;

    template <class Task>
    void share(int count, Task task) {
        loops_.share(count, task);
    }

    void everyone_done() { meet(step.team); }

    float* hidden_of(int row) { return step.hidden + static_cast<size_t>(row) * model.hidden_stride; }

    // ---- rows as int8 -----------------------------------------------------------------------------------------------

    // Calls quantise_row(row, rows) for all rows, into every thread's own copy when there are few.
    template <class QuantiseRow>
    QuantisedRows quantise_rows(int num_rows, QuantiseRow quantise_row) {
        if (num_rows <= kOwnQuantisedRows) {
            for (int row = 0; row < num_rows; ++row) quantise_row(row, scratch.quantised);
            return scratch.quantised;
        }
        share(num_rows, [&](int row) { quantise_row(row, step.input); });
        everyone_done();
        return step.input;
    }

    // A row of the hidden size divided by its root mean square, as floats.
    void normalise_floats(const float* from, const float* norm, float* to) {
        const Lanes scale = splat(inverse_rms(from, shape.hidden, model.hidden_stride, shape.norm_epsilon));
        for (int i = 0; i < model.hidden_stride; i += kLanes) store(to + i, load(from + i) * scale * load(norm + i));
    }

    // Into the groups of the row from input `at` on.
    void normalise(const float* from, const float* norm, int row, const QuantisedRows& to, int at = 0) {
        const Lanes scale = splat(inverse_rms(from, shape.hidden, model.hidden_stride, shape.norm_epsilon));
        alignas(64) float group[kGroup];
        for (int i = 0; i < model.hidden_stride; i += kGroup) {
            for (int j = 0; j < kGroup; j += kLanes)
                store(group + j, load(from + i + j) * scale * load(norm + i + j));
            quantise_group(group, to, row, at + i);
        }
    }

    void embed_row(int token, float* to) {
        const Linear& table = model.embedding;
        const int8_t* panel = table.panels + static_cast<size_t>(token / kLanes) * table.num_inputs * kLanes;
        const uint16_t* scales = scales_of(table, token / kLanes) + token % kLanes;
        for (int k = 0; k < model.hidden_stride; ++k)
            to[k] = from_half(scales[k / kGroup * kLanes]) * panel[k / 4 * 64 + token % kLanes * 4 + k % 4] *
                    shape.embedding_scale;
    }

    // ---- products ---------------------------------------------------------------------------------------------------

    // Computes rows x linear in units of a few panels and hands each piece [rows][unit x 16] to finish(unit, row, count).
    // A panel stays in the first-level cache while all rows of a stretch pass it.
    template <class Finish>
    void multiply(const Linear& linear, const QuantisedRows& rows, int num_rows, int unit_panels, int product,
                  Finish finish) {
        look_down(product, rows);
        const int num_units = (linear.num_panels + unit_panels - 1) / unit_panels;
        share(num_units, [&](int unit) { multiply_unit(linear, rows, 0, num_rows, unit, unit_panels, product, finish); });
    }

    // One unit of the product for consecutive rows.
    template <class Finish>
    void multiply_unit(const Linear& linear, const QuantisedRows& rows, int first_row, int num_rows, int unit,
                       int unit_panels, int product, Finish finish) {
        constexpr int kStretch = 64;
        const int first = unit * unit_panels, last = smaller(first + unit_panels, linear.num_panels);
        for (int row = first_row; row < first_row + num_rows; row += kStretch) {
            const int count = smaller(kStretch, first_row + num_rows - row);
            for (int panel = first; panel < last; ++panel)
                multiply_panel(linear, panel, rows, row, count, scratch.tile + (panel - first) * kLanes,
                               unit_panels * kLanes, row == first_row);
            if (step.adapters && product != kNoProduct) add_adapters(product, first, last, row, count, unit_panels);
            finish(unit, row, count);
        }
    }

    // `is_new`: this is the first stretch of rows; later ones find the panels in a cache.
    void multiply_panel(const Linear& linear, int panel, const QuantisedRows& rows, int first_row, int num_rows,
                        float* out, int out_stride, bool is_new) {
        const size_t panel_bytes = static_cast<size_t>(linear.num_inputs) * kLanes;
        const int8_t* weights = linear.panels + panel * panel_bytes;
        const uint16_t* scales = scales_of(linear, panel);
        const int num_groups = linear.num_inputs / kGroup;
        const int8_t* ahead = weights + panel_bytes;
        // The next panel comes while this one is worked on: all of it beside a lone tile, half beside each of the first
        // two otherwise. A single row is not worth it: it reads memory in one stream, which the machine foresees.
        const bool is_lone = num_rows <= smaller(rows_at_once(num_rows), kWideRows);
        int lines = !is_new || panel + 1 == linear.num_panels || num_rows == 1 ? 0 : is_lone ? 4 : 2;
        if (lines > 0)
            for (int i = 0; i < num_groups * kLanes; i += 32) prefetch(scales + num_groups * kLanes + i);
        for (int row = 0, count; row < num_rows; row += count) {
            count = rows_at_once(num_rows - row);
            multiply_tiles(count, rows_from(rows, first_row + row), weights, scales, num_groups,
                           out + static_cast<size_t>(row) * out_stride, out_stride, ahead, lines);
            ahead += panel_bytes / 2;
            if (row > 0 || count > kWideRows) lines = 0;
        }
    }

    // ---- adapters ---------------------------------------------------------------------------------------------------

    const LowRank* low_rank(int product, int row) const {
        const Adapter* adapter = step.adapters[row];
        if (!adapter || !adapter->products[product].down) return nullptr;
        return adapter->products + product;
    }

    // The first products of all rows that have an adapter, from the input as the base product sees it. A number of the
    // result is one sum over the inputs in order.
    void look_down(int product, const QuantisedRows& rows) {
        if (!step.adapters || product == kNoProduct) return;
        share(step.num_rows, [&](int row) {
            const LowRank* low = low_rank(product, row);
            if (!low) return;
            float* to = step.low + static_cast<size_t>(row) * step.low_stride;
            const int8_t* values = rows.values + static_cast<size_t>(row) * rows.stride;
            const float* scales = rows.scales + static_cast<size_t>(row) * rows.scale_stride;
            for (int first = 0; first < low->rank; first += kLanes) {
                Lanes sums = splat(0);
                for (int k = 0; k < low->num_inputs; ++k)
                    sums = fma(splat(scales[k / kGroup] * static_cast<float>(values[k])),
                               load(low->down + static_cast<size_t>(k) * low->rank + first), sums);
                store(to + first, sums);
            }
        });
        everyone_done();
    }

    // Adds the second products to finished panels [first, last) of a tile.
    void add_adapters(int product, int first, int last, int first_row, int num_rows, int unit_panels) {
        for (int i = 0; i < num_rows; ++i) {
            const LowRank* low = low_rank(product, first_row + i);
            if (!low) continue;
            const float* from = step.low + static_cast<size_t>(first_row + i) * step.low_stride;
            for (int panel = first; panel < last; ++panel) {
                const Slice& slice = low->slices[panel];
                float* to = scratch.tile + (i * unit_panels + panel - first) * kLanes;
                Lanes sums = splat(0);
                for (int j = 0; j < slice.count; ++j)
                    sums = fma(splat(from[slice.first + j]), load(low->up + slice.offset + j * kLanes), sums);
                if (slice.count > 0) store(to, load(to) + sums);
            }
        }
    }

    // 16 finished outputs of a row of the tile, with the bias.
    Lanes output_of(const Linear& linear, const float* tile, int output) {
        return linear.bias ? load(tile) + load(linear.bias + output) : load(tile);
    }

    void multiply_and_store(const Linear& linear, const QuantisedRows& rows, int product, float* to, int to_stride) {
        constexpr int kUnit = 2;
        multiply(linear, rows, step.num_rows, kUnit, product, [&](int unit, int row, int count) {
            for (int i = 0; i < count; ++i)
                for (int j = 0; j < kUnit && unit * kUnit + j < linear.num_panels; ++j) {
                    const int output = (unit * kUnit + j) * kLanes;
                    store(to + static_cast<size_t>(row + i) * to_stride + output,
                          output_of(linear, scratch.tile + (i * kUnit + j) * kLanes, output));
                }
        });
    }

    // hidden += rows x linear, which is normalised first where there is a norm.
    void add_product(const Linear& linear, const QuantisedRows& rows, int product, const float* norm) {
        if (!norm) {
            multiply_and_add(linear, rows, product);
            return;
        }
        multiply_and_store(linear, rows, product, step.branch, model.hidden_stride);
        everyone_done();
        share(step.num_rows, [&](int row) {
            normalise_floats(step.branch + static_cast<size_t>(row) * model.hidden_stride, norm, scratch.tile);
            float* to = hidden_of(row);
            for (int i = 0; i < model.hidden_stride; i += kLanes) store(to + i, load(to + i) + load(scratch.tile + i));
        });
    }

    // hidden += rows x linear.
    void multiply_and_add(const Linear& linear, const QuantisedRows& rows, int product) {
        constexpr int kUnit = 2;
        multiply(linear, rows, step.num_rows, kUnit, product, [&](int unit, int row, int count) {
            for (int i = 0; i < count; ++i)
                for (int j = 0; j < kUnit && unit * kUnit + j < linear.num_panels; ++j) {
                    const int output = (unit * kUnit + j) * kLanes;
                    float* to = hidden_of(row + i) + output;
                    store(to, load(to) + output_of(linear, scratch.tile + (i * kUnit + j) * kLanes, output));
                }
        });
    }

 private:
    SharedLoops loops_;
};

}  // namespace
}  // namespace axon
