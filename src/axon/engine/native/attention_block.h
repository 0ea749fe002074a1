// Causal attention of one layer over paged KV: writes the rows' keys and values, and adds what they see to the hidden
// rows. Knows no MLP.
#pragma once

namespace axon {
namespace {

class AttentionBlock {
 public:
    explicit AttentionBlock(Walk& walk)
        : walk_(walk), model_(walk.model), shape_(walk.shape), step_(walk.step), scratch_(walk.scratch) {}

    void run(int index) {
        const Layer& layer = model_.layers[index];
        const int qkv = index * kProducts, output = qkv + 1;
        window_ = layer.window;
        sinks_ = layer.sinks;
        skipped_ = layer.skipped;
        const QuantisedRows input = walk_.quantise_rows(step_.num_rows, [&](int row, const QuantisedRows& to) {
            int at = 0;
            if (model_.embedding_norm) {
                walk_.embed_row(step_.tokens[row], scratch_.tile);
                walk_.normalise(scratch_.tile, model_.embedding_norm, row, to);
                at = model_.hidden_stride;
            }
            walk_.normalise(walk_.hidden_of(row), layer.input_norm, row, to, at);
        });
        walk_.multiply_and_store(layer.qkv, input, qkv, step_.qkv, model_.qkv_stride);
        walk_.everyone_done();
        if (!step_.one_row_spans) {
            walk_.share(step_.num_items, [&](int item) { keep_past(index, step_.items[item], 0, shape_.kv_heads); });
            walk_.everyone_done();
        }
        if (step_.together) {
            attend_to_parts(index);
            walk_.everyone_done();
            const QuantisedRows seen = walk_.quantise_rows(step_.num_rows, [&](int row, const QuantisedRows& to) {
                join_row(row, scratch_.tile);
                quantise_groups(scratch_.tile, model_.heads_stride, to, row, 0);
            });
            walk_.add_product(layer.output, seen, output, layer.attention_post);
            walk_.everyone_done();
            return;
        }
        attend_apart(index);
        walk_.everyone_done();
        if (heads_fill_groups()) {
            walk_.add_product(layer.output, step_.input, output, layer.attention_post);
        } else {
            const QuantisedRows seen = walk_.quantise_rows(step_.num_rows, [&](int row, const QuantisedRows& to) {
                quantise_groups(seen_of(row), model_.heads_stride, to, row, 0);
            });
            walk_.add_product(layer.output, seen, output, layer.attention_post);
        }
        walk_.everyone_done();
    }

 private:
    Walk& walk_;
    const Model& model_;
    const Shape& shape_;
    const Step& step_;
    Scratch& scratch_;
    int window_ = 0;  // of the layer at hand
    const float* sinks_ = nullptr;  // likewise
    int skipped_ = 0;

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
                turn(key, model_.layers[index], model_.layers[index].key_norm, position);
                keep(kept(index, block, head), position % kLanes, key, value);
            }
        }
    }

    void turn(float* head, const Layer& layer, const float* norm, int position) {
        const int half = shape_.rotary / 2;
        if (norm) normalise_head(head, norm);
        const float* cos = layer.rope_cos + static_cast<size_t>(position) * half;
        const float* sin = layer.rope_sin + static_cast<size_t>(position) * half;
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
        walk_.share(step_.num_items * shape_.kv_heads, [&](int i) {
            // From the back: late queries see the most keys, and long work is best begun first.
            const Item& item = step_.items[step_.num_items - 1 - i / shape_.kv_heads];
            const int kv_head = i % shape_.kv_heads;
            if (step_.one_row_spans) keep_past(index, item, kv_head, kv_head + 1);
            look(index, item, kv_head);
            for (int part = first_part_of(item); part < parts_of(item); ++part) attend(index, item, kv_head, part, scratch_.parts);
            for (int query = 0; query < item.num_rows; ++query) give_out(item, query, kv_head);
        });
    }

    // Each thread takes parts of the past of the few items, all of which the next one to need them joins for itself.
    void attend_to_parts(int index) {
        walk_.share(step_.num_items * shape_.kv_heads * step_.num_parts, [&](int i) {
            const int unit = i / step_.num_parts, part = i % step_.num_parts, kv_head = unit % shape_.kv_heads;
            const Item& item = step_.items[unit / shape_.kv_heads];
            if (part < first_part_of(item) || part >= parts_of(item)) return;
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
            join(item, row - item.first_row, kv_head, step_.parts[index * shape_.kv_heads + kv_head],
                 to + kv_head * queries_per_head() * shape_.head_dim);
        for (int i = shape_.heads * shape_.head_dim; i < model_.heads_stride; ++i) to[i] = 0;
    }

    int queries_per_head() const { return shape_.heads / shape_.kv_heads; }
    int rows_of(const Item& item) const { return item.num_rows * queries_per_head(); }
    int seen_by(const Item& item, int query) const { return step_.positions[item.first_row + query] + 1; }
    int unseen_by(const Item& item, int query) const {  // tokens before the window of a query
        const int seen = seen_by(item, query), before = window_ > 0 ? seen - window_ : 0;
        return before > skipped_ ? before : smaller(skipped_, seen - 1);
    }
    int first_part_of(const Item& item) const { return unseen_by(item, 0) / kPartTokens; }
    int blocks_of(const Item& item) const { return (seen_by(item, item.num_rows - 1) + kLanes - 1) / kLanes; }
    int parts_of(const Item& item) const { return (blocks_of(item) + kPartBlocks - 1) / kPartBlocks; }

    // Turns the queries of an item by their position and quantises them.
    void look(int index, const Item& item, int kv_head) {
        const int share = queries_per_head(), dim = shape_.head_dim;
        alignas(64) float query[kMaxDim];
        for (int i = 0; i < rows_of(item); ++i) {
            const int row = item.first_row + i / share;
            __builtin_memcpy(query, qkv_of(row) + static_cast<size_t>(kv_head * share + i % share) * dim, sizeof(float) * dim);
            turn(query, model_.layers[index], model_.layers[index].query_norm, step_.positions[row]);
            int8_t* to = scratch_.queries + i * model_.dim_stride;
            scratch_.query_scales[i] = shape_.query_scale * quantise_head(query, to);
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
            const int query = row / queries_per_head(), start = part * kPartTokens;
            const int unseen = unseen_by(item, query) - start, end = seen_by(item, query) - start;
            soften(row, unseen > 0 ? unseen : 0, smaller(end, kPartTokens), num_blocks, parts,
                   row * step_.part_stride + part);
        }
        gather_values(rows_of(item), num_blocks, values_of(parts, part));
    }

    float* values_of(const Parts& parts, int part) {
        return parts.values + static_cast<size_t>(part) * kQueriesPerItem * queries_per_head() * model_.dim_stride;
    }

    void score(int num_rows, int num_blocks) {
        alignas(64) int32_t products[kMostDotsAtOnce * kLanes];
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
    // go to parts[at]. The row sees the part's tokens from `first` to before `end`; the others get exact zeros.
    void soften(int row, int first, int end, int num_blocks, const Parts& parts, int at) {
        float* scores = scratch_.scores + row * kPartTokens;
        int8_t* weights = scratch_.weights + row * kPartTokens;
        float* weight_scales = scratch_.weight_scales + row * kPartBlocks;
        const int first_block = first / kLanes, end_block = end > first ? (end + kLanes - 1) / kLanes : first_block;
        for (int block = 0; block < smaller(first_block, num_blocks); ++block) store_int8(weights + block * kLanes, splat(0));
        for (int block = end_block; block < num_blocks; ++block) store_int8(weights + block * kLanes, splat(0));
        if (end_block == first_block) {
            store(weight_scales, splat(0));
            return;
        }
        const auto seen_or = [&](Lanes lanes, int block, float fill) {
            if (block + 1 == end_block) lanes = first_or(lanes, end - block * kLanes, fill);
            return block == first_block && first % kLanes > 0 ? last_or(lanes, first % kLanes, fill) : lanes;
        };
        Lanes peaks = splat(-1e30f);
        for (int block = first_block; block < end_block; ++block)
            peaks = max(peaks, seen_or(load(scores + block * kLanes), block, -1e30f));
        parts.peaks[at] = largest(peaks);
        const Lanes peak = splat(parts.peaks[at]);
        Lanes total = splat(0);
        alignas(64) float tops[kPartBlocks] = {};
        for (int block = first_block; block < end_block; ++block) {
            const Lanes weight = seen_or(exponential(load(scores + block * kLanes) - peak), block, 0);
            const Lanes scaled = seen_or(weight * load(value_scales(scratch_.blocks[block])), block, 0);
            total = total + weight;
            store(scores + block * kLanes, scaled);
            tops[block] = largest(scaled);
        }
        // All blocks are weighed before the first is quantised, so that none waits for its largest weight.
        alignas(64) float inverses[kPartBlocks];
        store(weight_scales, load(tops) * splat(1.0f / 127.0f));
        store(inverses, splat(127.0f) / max(load(tops), splat(1e-30f)));
        for (int block = first_block; block < end_block; ++block)
            store_int8(weights + block * kLanes, load(scores + block * kLanes) * splat(inverses[block]));
        parts.sums[at] = sum(total);
    }

    // The lanes but for the first `count`, which are `fill`. One block of a row needs it, so it goes through memory.
    static Lanes last_or(Lanes lanes, int count, float fill) {
        alignas(64) float values[kLanes];
        store(values, lanes);
        for (int i = 0; i < count; ++i) values[i] = fill;
        return load(values);
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
        join(item, query, kv_head, scratch_.parts, seen_of(row) + start);
        if (heads_fill_groups()) quantise_groups(seen_of(row) + start, width, step_.input, row, start);
    }

    // Joins what a query saw of the parts of its past, through all heads of a KV head's share, as if they had one softmax.
    void join(const Item& item, int query, int kv_head, const Parts& parts, float* to) {
        const int first = unseen_by(item, query) / kPartTokens;
        const int end = (seen_by(item, query) + kPartTokens - 1) / kPartTokens;
        for (int i = 0; i < queries_per_head(); ++i)
            join_parts(parts, query * queries_per_head() + i, first, end,
                       sinks_ ? sinks_ + kv_head * queries_per_head() + i : nullptr, to + i * shape_.head_dim);
    }

    // The head's sink, if any, is one more score of the softmax, and adds no value.
    void join_parts(const Parts& parts, int row, int first, int end, const float* sink, float* to) {
        const float* peaks = parts.peaks + row * step_.part_stride;
        const float* sums = parts.sums + row * step_.part_stride;
        float peak = peaks[first];
        for (int part = first + 1; part < end; ++part) peak = peaks[part] > peak ? peaks[part] : peak;
        if (sink && *sink > peak) peak = *sink;
        alignas(64) float factors[kLanes], joined[kMaxDim];
        for (int d = 0; d < model_.dim_stride; d += kLanes) store(joined + d, splat(0));
        float total = 0;
        if (sink) {
            store(factors, exponential(splat(*sink - peak)));
            total = factors[0];
        }
        for (int part = first; part < end; ++part) {
            if (part == first || part % kLanes == 0)
                store(factors, exponential(load(peaks + part / kLanes * kLanes) - splat(peak)));
            const float factor = factors[part % kLanes];
            const float* values = values_of(parts, part) + row * model_.dim_stride;
            for (int d = 0; d < model_.dim_stride; d += kLanes)
                store(joined + d, fma(load(values + d), splat(factor), load(joined + d)));
            total = total + factor * sums[part];
        }
        const float inverse = 1.0f / total;
        for (int d = 0; d < shape_.head_dim; ++d) to[d] = joined[d] * inverse;
    }
};

}  // namespace
}  // namespace axon
