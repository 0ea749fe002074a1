// One step of a Llama-like decoder over a ragged batch of rows. Knows no Python, no scheduler and no threads but its own
// number. Compiled once for each instruction set: AXON_TILE and AXON_WIDE name its headers, AXON_STEP the entry point.
//
// A row is its own, bit by bit: products are whole numbers within a group of inputs, groups are added in order,
// attention goes block by block and part by part from position 0, and every sum over lanes has one fixed shape. How rows
// are cut into tiles, and which thread takes which tile, therefore changes nothing. Nothing here is in a namespace with linkage
// except the entry point: code compiled for a newer machine must not be picked by the linker for an older one.

#include "model.h"

#include AXON_TILE
#include AXON_WIDE

#include "tiles.h"
#include "numbers.h"
#include "shared_loops.h"

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

// ---- one thread's way through a step --------------------------------------------------------------------------------

class Walk {
 public:
    Walk(const Model& model, const Step& step, int thread)
        : model_(model), shape_(model.shape), step_(step), scratch_(step.scratch[thread]),
          loops_(step.counters, step.counter_stride, step.num_threads, thread) {}

    void run() {
        embed();
        for (int layer = 0; layer < shape_.layers; ++layer) {
            attention_block(layer);
            mlp_block(layer);
        }
        if (step_.num_outputs > 0) head();
    }

 private:
    const Model& model_;
    const Shape& shape_;
    const Step& step_;
    Scratch& scratch_;
    SharedLoops loops_;

    template <class Task>
    void share(int count, Task task) {
        loops_.share(count, task);
    }

    void everyone_done() { meet(step_.team); }

    // ---- embedding --------------------------------------------------------------------------------------------------

    void embed() {
        share(step_.num_rows, [&](int row) { embed_row(step_.tokens[row], hidden_of(row)); });
        everyone_done();
    }

    float* hidden_of(int row) { return step_.hidden + static_cast<size_t>(row) * model_.hidden_stride; }

    void embed_row(int token, float* to) {
        const Linear& table = model_.embedding;
        const int8_t* panel = table.panels + static_cast<size_t>(token / kLanes) * table.num_inputs * kLanes;
        const uint16_t* scales = scales_of(table, token / kLanes) + token % kLanes;
        for (int k = 0; k < model_.hidden_stride; ++k)
            to[k] = from_half(scales[k / kGroup * kLanes]) * panel[k / 4 * 64 + token % kLanes * 4 + k % 4];
    }

    // ---- rows as int8 -----------------------------------------------------------------------------------------------

    // Calls quantise_row(row, rows) for all rows, into every thread's own copy when there are few.
    template <class QuantiseRow>
    QuantisedRows quantise_rows(int num_rows, QuantiseRow quantise_row) {
        if (num_rows <= kOwnQuantisedRows) {
            for (int row = 0; row < num_rows; ++row) quantise_row(row, scratch_.quantised);
            return scratch_.quantised;
        }
        share(num_rows, [&](int row) { quantise_row(row, step_.input); });
        everyone_done();
        return step_.input;
    }

    void normalise(const float* from, const float* norm, int row, const QuantisedRows& to) {
        const Lanes scale = splat(inverse_rms(from, shape_.hidden, model_.hidden_stride, shape_.norm_epsilon));
        alignas(64) float group[kGroup];
        for (int i = 0; i < model_.hidden_stride; i += kGroup) {
            for (int j = 0; j < kGroup; j += kLanes)
                store(group + j, load(from + i + j) * scale * load(norm + i + j));
            quantise_group(group, to, row, i);
        }
    }

    // ---- products ---------------------------------------------------------------------------------------------------

    // Computes rows x linear in units of a few panels and hands each piece [rows][unit x 16] to finish(unit, row, count).
    // A panel stays in the first-level cache while all rows of a stretch pass it.
    template <class Finish>
    void multiply(const Linear& linear, const QuantisedRows& rows, int num_rows, int unit_panels, int product,
                  Finish finish) {
        constexpr int kStretch = 64;
        const int num_units = (linear.num_panels + unit_panels - 1) / unit_panels;
        share(num_units, [&](int unit) {
            const int first = unit * unit_panels;
            const int last = smaller(first + unit_panels, linear.num_panels);
            for (int row = 0; row < num_rows; row += kStretch) {
                const int count = smaller(kStretch, num_rows - row);
                for (int panel = first; panel < last; ++panel)
                    multiply_panel(linear, panel, rows, row, count, scratch_.tile + (panel - first) * kLanes,
                                   unit_panels * kLanes);
                if (step_.adapters && product != kNoProduct) add_adapters(product, first, last, row, count, unit_panels);
                finish(unit, row, count);
            }
        });
    }

    void multiply_panel(const Linear& linear, int panel, const QuantisedRows& rows, int first_row, int num_rows,
                        float* out, int out_stride) {
        const size_t panel_bytes = static_cast<size_t>(linear.num_inputs) * kLanes;
        const int8_t* weights = linear.panels + panel * panel_bytes;
        const uint16_t* scales = scales_of(linear, panel);
        const int num_groups = linear.num_inputs / kGroup;
        const int8_t* ahead = weights + panel_bytes;
        // The next panel comes while this one is worked on: all of it beside a lone tile, half beside each of the first
        // two otherwise. A single row is not worth it: it reads memory in one stream, which the machine foresees.
        int lines = panel + 1 == linear.num_panels || num_rows == 1 ? 0 : num_rows > rows_at_once(num_rows) ? 2 : 4;
        if (lines > 0)
            for (int i = 0; i < num_groups * kLanes; i += 32) prefetch(scales + num_groups * kLanes + i);
        for (int row = 0, count; row < num_rows; row += count) {
            count = rows_at_once(num_rows - row);
            multiply_tile(count, rows_from(rows, first_row + row), weights, scales, num_groups,
                          out + static_cast<size_t>(row) * out_stride, out_stride, ahead, lines);
            ahead += panel_bytes / 2;
            if (row > 0) lines = 0;
        }
    }

    // ---- adapters ---------------------------------------------------------------------------------------------------

    static constexpr int kNoProduct = -1;

    const LowRank* low_rank(int product, int row) const {
        const Adapter* adapter = step_.adapters[row];
        if (!adapter || !adapter->products[product].down) return nullptr;
        return adapter->products + product;
    }

    // The first products of all rows that have an adapter, from the input as the base product sees it. A number of the
    // result is one sum over the inputs in order.
    void look_down(int product, const QuantisedRows& rows) {
        if (!step_.adapters) return;
        share(step_.num_rows, [&](int row) {
            const LowRank* low = low_rank(product, row);
            if (!low) return;
            float* to = step_.low + static_cast<size_t>(row) * step_.low_stride;
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
            const float* from = step_.low + static_cast<size_t>(first_row + i) * step_.low_stride;
            for (int panel = first; panel < last; ++panel) {
                const Slice& slice = low->slices[panel];
                float* to = scratch_.tile + (i * unit_panels + panel - first) * kLanes;
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
        look_down(product, rows);
        multiply(linear, rows, step_.num_rows, kUnit, product, [&](int unit, int row, int count) {
            for (int i = 0; i < count; ++i)
                for (int j = 0; j < kUnit && unit * kUnit + j < linear.num_panels; ++j) {
                    const int output = (unit * kUnit + j) * kLanes;
                    store(to + static_cast<size_t>(row + i) * to_stride + output,
                          output_of(linear, scratch_.tile + (i * kUnit + j) * kLanes, output));
                }
        });
    }

    // hidden += rows x linear.
    void multiply_and_add(const Linear& linear, const QuantisedRows& rows, int product) {
        constexpr int kUnit = 2;
        look_down(product, rows);
        multiply(linear, rows, step_.num_rows, kUnit, product, [&](int unit, int row, int count) {
            for (int i = 0; i < count; ++i)
                for (int j = 0; j < kUnit && unit * kUnit + j < linear.num_panels; ++j) {
                    const int output = (unit * kUnit + j) * kLanes;
                    float* to = hidden_of(row + i) + output;
                    store(to, load(to) + output_of(linear, scratch_.tile + (i * kUnit + j) * kLanes, output));
                }
        });
    }

    // ---- attention --------------------------------------------------------------------------------------------------

    void attention_block(int index) {
        const Layer& layer = model_.layers[index];
        const int output = index * kProducts + 1;
        const QuantisedRows input = quantise_rows(step_.num_rows, [&](int row, const QuantisedRows& to) {
            normalise(hidden_of(row), layer.input_norm, row, to);
        });
        multiply_and_store(layer.qkv, input, index * kProducts, step_.qkv, model_.qkv_stride);
        everyone_done();
        if (!step_.one_row_spans) {
            share(step_.num_items, [&](int item) { keep_past(index, step_.items[item], 0, shape_.kv_heads); });
            everyone_done();
        }
        if (step_.together) {
            attend_to_parts(index);
            everyone_done();
            multiply_and_add(layer.output, quantise_rows(step_.num_rows, [&](int row, const QuantisedRows& to) {
                join_row(row, scratch_.tile);
                quantise_groups(scratch_.tile, model_.heads_stride, to, row, 0);
            }), output);
            everyone_done();
            return;
        }
        attend_apart(index);
        everyone_done();
        if (heads_fill_groups()) {
            multiply_and_add(layer.output, step_.input, output);
        } else {
            multiply_and_add(layer.output, quantise_rows(step_.num_rows, [&](int row, const QuantisedRows& to) {
                quantise_groups(seen_of(row), model_.heads_stride, to, row, 0);
            }), output);
        }
        everyone_done();
    }

    // Whether what one KV head's queries see is whole groups, so that it can be quantised where it is computed.
    bool heads_fill_groups() const { return shape_.heads / shape_.kv_heads * shape_.head_dim % kGroup == 0; }

    float* qkv_of(int row) { return step_.qkv + static_cast<size_t>(row) * model_.qkv_stride; }
    float* seen_of(int row) { return step_.seen + static_cast<size_t>(row) * model_.heads_stride; }

    uint8_t* kept(int layer, int block, int kv_head) {
        return model_.kv + block * model_.kv_block_bytes + layer * model_.kv_layer_bytes +
               kv_head * model_.kv_head_bytes;
    }

    float* key_scales(uint8_t* head) { return reinterpret_cast<float*>(head + 2 * kLanes * model_.dim_stride); }
    float* value_scales(uint8_t* head) { return key_scales(head) + kLanes; }

    // Turns the keys by their position, and stores keys and values.
    void keep_past(int index, const Item& item, int first_head, int last_head) {
        const int dim = shape_.head_dim;
        for (int row = item.first_row; row < item.first_row + item.num_rows; ++row) {
            const int position = step_.positions[row];
            const int block = step_.block_ids[step_.table_starts[item.span] + position / kLanes];
            for (int head = first_head; head < last_head; ++head) {
                float* key = qkv_of(row) + static_cast<size_t>(shape_.heads + head) * dim;
                const float* value = key + static_cast<size_t>(shape_.kv_heads) * dim;
                turn(key, model_.layers[index].key_norm, position);
                keep(kept(index, block, head), position % kLanes, key, value);
            }
        }
    }

    void turn(float* head, const float* norm, int position) {
        const int half = shape_.head_dim / 2;
        if (norm) normalise_head(head, norm);
        const float* cos = model_.rope_cos + static_cast<size_t>(position) * half;
        const float* sin = model_.rope_sin + static_cast<size_t>(position) * half;
        for (int i = 0; i < half; ++i) {
            const float first = head[i], second = head[i + half];
            head[i] = first * cos[i] - second * sin[i];
            head[i + half] = second * cos[i] + first * sin[i];
        }
    }

    void normalise_head(float* head, const float* norm) {
        alignas(64) float padded[kMaxDim] = {};
        for (int i = 0; i < shape_.head_dim; ++i) padded[i] = head[i];
        const float scale = inverse_rms(padded, shape_.head_dim, model_.dim_stride, shape_.norm_epsilon);
        for (int i = 0; i < shape_.head_dim; ++i) head[i] = head[i] * scale * norm[i];
    }

    static constexpr int kMaxDim = 512;

    // A head as int8, padded with zeros to whole vectors.
    float quantise_head(const float* head, int8_t* to) {
        if (shape_.head_dim == model_.dim_stride) return quantise(head, shape_.head_dim, to);
        alignas(64) float padded[kMaxDim] = {};
        for (int i = 0; i < shape_.head_dim; ++i) padded[i] = head[i];
        return quantise(padded, model_.dim_stride, to);
    }

    void keep(uint8_t* head, int slot, const float* key, const float* value) {
        const int dim = model_.dim_stride;
        alignas(64) int8_t row[kMaxDim];
        key_scales(head)[slot] = quantise_head(key, row);
        for (int d = 0; d < dim; d += 4) __builtin_memcpy(head + d * kLanes + slot * 4, row + d, 4);
        value_scales(head)[slot] = quantise_head(value, row);
        uint8_t* values = head + dim * kLanes + slot / 4 * 64 + slot % 4;
        for (int d = 0; d < dim; ++d) values[d / kLanes * 256 + d % kLanes * 4] = static_cast<uint8_t>(row[d]);
    }

    // Each thread takes whole KV heads of items.
    void attend_apart(int index) {
        share(step_.num_items * shape_.kv_heads, [&](int i) {
            // From the back: late queries see the most keys, and long work is best begun first.
            const Item& item = step_.items[step_.num_items - 1 - i / shape_.kv_heads];
            const int kv_head = i % shape_.kv_heads;
            if (step_.one_row_spans) keep_past(index, item, kv_head, kv_head + 1);
            look(index, item, kv_head);
            for (int part = 0; part < parts_of(item); ++part) attend(index, item, kv_head, part, scratch_.parts);
            for (int query = 0; query < item.num_rows; ++query) give_out(item, query, kv_head);
        });
    }

    // Each thread takes parts of the past of the few items, all of which the next one to need them joins for itself.
    void attend_to_parts(int index) {
        share(step_.num_items * shape_.kv_heads * step_.num_parts, [&](int i) {
            const int unit = i / step_.num_parts, part = i % step_.num_parts, kv_head = unit % shape_.kv_heads;
            const Item& item = step_.items[unit / shape_.kv_heads];
            if (part >= parts_of(item)) return;
            if (step_.one_row_spans && part + 1 == parts_of(item)) keep_past(index, item, kv_head, kv_head + 1);
            look(index, item, kv_head);
            attend(index, item, kv_head, part, step_.parts[unit]);
        });
    }

    void join_row(int row, float* to) {
        int index = 0;
        while (row >= step_.items[index].first_row + step_.items[index].num_rows) ++index;
        const Item& item = step_.items[index];
        for (int kv_head = 0; kv_head < shape_.kv_heads; ++kv_head)
            join(item, row - item.first_row, step_.parts[index * shape_.kv_heads + kv_head],
                 to + kv_head * queries_per_head() * shape_.head_dim);
        for (int i = shape_.heads * shape_.head_dim; i < model_.heads_stride; ++i) to[i] = 0;
    }

    int queries_per_head() const { return shape_.heads / shape_.kv_heads; }
    int rows_of(const Item& item) const { return item.num_rows * queries_per_head(); }
    int seen_by(const Item& item, int query) const { return step_.positions[item.first_row + query] + 1; }
    int blocks_of(const Item& item) const { return (seen_by(item, item.num_rows - 1) + kLanes - 1) / kLanes; }
    int parts_of(const Item& item) const { return (blocks_of(item) + kPartBlocks - 1) / kPartBlocks; }

    // Turns the queries of an item by their position and quantises them.
    void look(int index, const Item& item, int kv_head) {
        const int share = queries_per_head(), dim = shape_.head_dim;
        const float scale = 1.0f / __builtin_sqrtf(static_cast<float>(dim));
        alignas(64) float query[kMaxDim];
        for (int i = 0; i < rows_of(item); ++i) {
            const int row = item.first_row + i / share;
            __builtin_memcpy(query, qkv_of(row) + static_cast<size_t>(kv_head * share + i % share) * dim, sizeof(float) * dim);
            turn(query, model_.layers[index].query_norm, step_.positions[row]);
            int8_t* to = scratch_.queries + i * model_.dim_stride;
            scratch_.query_scales[i] = scale * quantise_head(query, to);
            scratch_.query_starts[i] = start_of(to, model_.dim_stride);
        }
    }

    // What the queries that were looked at see of one part of their past.
    void attend(int layer, const Item& item, int kv_head, int part, const Parts& parts) {
        const int first = part * kPartBlocks, num_blocks = smaller(kPartBlocks, blocks_of(item) - first);
        const int32_t* ids = step_.block_ids + step_.table_starts[item.span] + first;
        for (int i = 0; i < num_blocks; ++i) scratch_.blocks[i] = kept(layer, ids[i], kv_head);
        score(rows_of(item), num_blocks);
        for (int row = 0; row < rows_of(item); ++row) {
            const int num_seen = seen_by(item, row / queries_per_head()) - part * kPartTokens;
            soften(row, smaller(num_seen, kPartTokens), num_blocks, parts, row * step_.part_stride + part);
        }
        gather_values(rows_of(item), num_blocks, values_of(parts, part));
    }

    float* values_of(const Parts& parts, int part) {
        return parts.values + static_cast<size_t>(part) * kQueriesPerItem * queries_per_head() * model_.dim_stride;
    }

    void score(int num_rows, int num_blocks) {
        alignas(64) int32_t products[kMostRowsAtOnce * kLanes];
        const int dim = model_.dim_stride;
        for (int block = 0; block < num_blocks; ++block) {
            uint8_t* head = scratch_.blocks[block];
            if (block + 1 < num_blocks) prefetch_head(scratch_.blocks[block + 1]);
            const Lanes scales = load(key_scales(head));
            for (int row = 0, count; row < num_rows; row += count) {
                count = dots_at_once(num_rows - row, dim);
                dot_tile(count, scratch_.queries + row * dim, dim, scratch_.query_starts + row,
                         reinterpret_cast<const int8_t*>(head), dim, products);
                for (int i = 0; i < count; ++i)
                    store(scratch_.scores + (row + i) * kPartTokens + block * kLanes,
                          from_ints(products + i * kLanes) * (scales * splat(scratch_.query_scales[row + i])));
            }
        }
    }

    void prefetch_head(const uint8_t* head) {
        for (size_t i = 0; i < model_.kv_head_bytes; i += 64) prefetch(head + i);
    }

    // Turns a row's scores into softmax weights, times the value scales, as int8 with a scale per block; its peak and sum
    // go to parts[at]. Tokens the row does not see get exact zeros.
    void soften(int row, int num_seen, int num_blocks, const Parts& parts, int at) {
        float* scores = scratch_.scores + row * kPartTokens;
        int8_t* weights = scratch_.weights + row * kPartTokens;
        float* weight_scales = scratch_.weight_scales + row * kPartBlocks;
        const int own_blocks = num_seen > 0 ? (num_seen + kLanes - 1) / kLanes : 0;
        for (int block = own_blocks; block < num_blocks; ++block) store_int8(weights + block * kLanes, splat(0));
        if (own_blocks == 0) {
            store(weight_scales, splat(0));
            return;
        }
        const int rest = num_seen - (own_blocks - 1) * kLanes;
        Lanes peaks = first_or(load(scores + (own_blocks - 1) * kLanes), rest, -1e30f);
        for (int block = 0; block + 1 < own_blocks; ++block) peaks = max(peaks, load(scores + block * kLanes));
        parts.peaks[at] = largest(peaks);
        const Lanes peak = splat(parts.peaks[at]);
        Lanes total = splat(0);
        alignas(64) float tops[kPartBlocks] = {};
        for (int block = 0; block < own_blocks; ++block) {
            Lanes weight = exponential(load(scores + block * kLanes) - peak);
            Lanes scaled = weight * load(value_scales(scratch_.blocks[block]));
            if (block + 1 == own_blocks) {
                weight = first_or(weight, rest, 0);
                scaled = first_or(scaled, rest, 0);
            }
            total = total + weight;
            store(scores + block * kLanes, scaled);
            tops[block] = largest(scaled);
        }
        // All blocks are weighed before the first is quantised, so that none waits for its largest weight.
        alignas(64) float inverses[kPartBlocks];
        store(weight_scales, load(tops) * splat(1.0f / 127.0f));
        store(inverses, splat(127.0f) / max(load(tops), splat(1e-30f)));
        for (int block = 0; block < own_blocks; ++block)
            store_int8(weights + block * kLanes, load(scores + block * kLanes) * splat(inverses[block]));
        parts.sums[at] = sum(total);
    }

    // The weighted values of all rows: [row][dim].
    void gather_values(int num_rows, int num_blocks, float* to) {
        const int dim = model_.dim_stride;
        for (int panel = 0; panel < dim / kLanes; ++panel)
            for (int row = 0, count; row < num_rows; row += count) {
                count = narrow_rows(num_rows - row);
                weigh_tile(count, scratch_.weights + row * kPartTokens, kPartTokens,
                           scratch_.weight_scales + row * kPartBlocks, kPartBlocks, scratch_.blocks,
                           static_cast<size_t>(kLanes) * dim + panel * 256, num_blocks, to + row * dim + panel * kLanes,
                           dim);
            }
    }

    void give_out(const Item& item, int query, int kv_head) {
        const int width = queries_per_head() * shape_.head_dim, start = kv_head * width, row = item.first_row + query;
        join(item, query, scratch_.parts, seen_of(row) + start);
        if (heads_fill_groups()) quantise_groups(seen_of(row) + start, width, step_.input, row, start);
    }

    // Joins what a query saw of the parts of its past, through all heads of a KV head's share, as if they had one softmax.
    void join(const Item& item, int query, const Parts& parts, float* to) {
        const int num_parts = (seen_by(item, query) + kPartTokens - 1) / kPartTokens;
        for (int i = 0; i < queries_per_head(); ++i)
            join_parts(parts, query * queries_per_head() + i, num_parts, to + i * shape_.head_dim);
    }

    void join_parts(const Parts& parts, int row, int num_parts, float* to) {
        const float* peaks = parts.peaks + row * step_.part_stride;
        const float* sums = parts.sums + row * step_.part_stride;
        float peak = peaks[0];
        for (int part = 1; part < num_parts; ++part) peak = peaks[part] > peak ? peaks[part] : peak;
        alignas(64) float factors[kLanes], joined[kMaxDim];
        for (int d = 0; d < model_.dim_stride; d += kLanes) store(joined + d, splat(0));
        float total = 0;
        for (int part = 0; part < num_parts; ++part) {
            if (part % kLanes == 0) store(factors, exponential(load(peaks + part) - splat(peak)));
            const float factor = factors[part % kLanes];
            const float* values = values_of(parts, part) + row * model_.dim_stride;
            for (int d = 0; d < model_.dim_stride; d += kLanes)
                store(joined + d, fma(load(values + d), splat(factor), load(joined + d)));
            total = total + factor * sums[part];
        }
        const float inverse = 1.0f / total;
        for (int d = 0; d < shape_.head_dim; ++d) to[d] = joined[d] * inverse;
    }

    // ---- the rest of a layer ----------------------------------------------------------------------------------------

    void mlp_block(int index) {
        const Layer& layer = model_.layers[index];
        const QuantisedRows input = quantise_rows(step_.num_rows, [&](int row, const QuantisedRows& to) {
            normalise(hidden_of(row), layer.mlp_norm, row, to);
        });
        // A unit is as many panels of gate and up as make one group of down's inputs.
        constexpr int kUnit = 2 * kGroup / kLanes;
        look_down(index * kProducts + 2, input);
        multiply(layer.gate_up, input, step_.num_rows, kUnit, index * kProducts + 2, [&](int unit, int row, int count) {
            for (int i = 0; i < count; ++i) gate(layer.gate_up, unit, scratch_.tile + i * kUnit * kLanes, row + i);
        });
        everyone_done();
        multiply_and_add(layer.down, step_.inner, index * kProducts + 3);
        everyone_done();
    }

    // silu(gate) * up of one group, straight to int8.
    void gate(const Linear& linear, int unit, const float* tile, int row) {
        alignas(64) float group[kGroup];
        for (int i = 0; i < kGroup; i += kLanes) {
            const int output = (unit * kGroup + i) * 2;
            const Lanes gate = output_of(linear, tile + 2 * i, output);
            const Lanes up = output_of(linear, tile + 2 * i + kLanes, output + kLanes);
            store(group + i, gate / (splat(1.0f) + exponential(min(splat(0.0f) - gate, splat(88.0f)))) * up);
        }
        quantise_group(group, step_.inner, row, unit * kGroup);
    }

    // ---- the head ---------------------------------------------------------------------------------------------------

    void head() {
        const QuantisedRows input = quantise_rows(step_.num_outputs, [&](int row, const QuantisedRows& to) {
            normalise(hidden_of(step_.output_rows[row]), model_.final_norm, row, to);
        });
        for (int row = 0; row < step_.num_outputs; ++row) {
            scratch_.best_value[row] = -1e30f;
            scratch_.best_token[row] = 0;
        }
        constexpr int kUnit = 8;
        multiply(model_.head, input, step_.num_outputs, kUnit, kNoProduct, [&](int unit, int row, int count) {
            for (int j = 0; j < kUnit && unit * kUnit + j < model_.head.num_panels; ++j)
                for (int i = 0; i < count; ++i)
                    take_logits(unit * kUnit + j, scratch_.tile + (i * kUnit + j) * kLanes, row + i);
        });
        everyone_done();
    }

    // Stores 16 logits of a row where they are wanted, and remembers the largest; the lowest token wins a tie.
    void take_logits(int panel, const float* tile, int row) {
        const int first = panel * kLanes, count = smaller(kLanes, shape_.vocab - first);
        const Lanes logits = first_or(output_of(model_.head, tile, first), count, -1e30f);
        alignas(64) float values[kLanes];
        store(values, logits);
        if (step_.logits)
            __builtin_memcpy(step_.logits + static_cast<size_t>(row) * shape_.vocab + first, values, sizeof(float) * count);
        const float top = largest(logits);
        if (top < scratch_.best_value[row]) return;
        int lane = 0;
        while (values[lane] != top && lane + 1 < count) ++lane;
        if (top > scratch_.best_value[row] || first + lane < scratch_.best_token[row]) {
            scratch_.best_value[row] = top;
            scratch_.best_token[row] = first + lane;
        }
    }
};

}  // namespace

void AXON_STEP(const Model& model, const Step& step, int thread) {
    [[maybe_unused]] const WideTiles tiles;
    Walk(model, step, thread).run();
}

}  // namespace axon
