// What a draft head takes out of its target's steps, and how it reads it again. Knows no attention and no MLP.
#pragma once

namespace axon {
namespace {

class TapBlock {
 public:
    explicit TapBlock(Walk& walk) : walk_(walk), model_(walk.model), step_(walk.step), scratch_(walk.scratch) {}

    // Takes the inputs of a layer that the head wants. No thread changes them before all have met in the layer.
    void look(int layer) {
        if (!model_.taps.fuse.panels) return;
        for (int i = 0; i < kFeatures; ++i)
            if (model_.taps.layers[i] == layer)
                walk_.share(step_.num_rows, [&](int row) {
                    quantise_groups(walk_.hidden_of(row), model_.hidden_stride, step_.features, row,
                                    i * model_.hidden_stride);
                });
    }

    // Fuses what was taken into the head's rows, and keeps these in the blocks.
    void keep() {
        constexpr int kUnit = 2;
        const Taps& taps = model_.taps;
        if (!taps.fuse.panels) return;
        walk_.multiply(taps.fuse, step_.features, step_.num_rows, kUnit, kNoProduct, [&](int unit, int row, int count) {
            for (int i = 0; i < count; ++i) {
                uint16_t* to = kept(step_.row_blocks[row + i], step_.positions[row + i], taps.offset);
                for (int j = 0; j < kUnit && unit * kUnit + j < taps.fuse.num_panels; ++j)
                    keep_halves(scratch_.tile + (i * kUnit + j) * kLanes, to + (unit * kUnit + j) * kLanes);
            }
        });
    }

    // The head's row of the token before a row's own: what was given, or what its target has kept.
    void read(int row) {
        float* to = walk_.hidden_of(row);
        const int stride = model_.hidden_stride, block = step_.row_blocks[row];
        if (step_.given) {
            __builtin_memcpy(to, step_.given + static_cast<size_t>(row) * stride, sizeof(float) * stride);
            return;
        }
        const uint16_t* from = block < 0 ? nullptr : kept(block, step_.positions[row] - 1, model_.rows_offset);
        for (int i = 0; i < stride; ++i) to[i] = from ? from_half(from[i]) : 0;
    }

 private:
    Walk& walk_;
    const Model& model_;
    const Step& step_;
    Scratch& scratch_;

    uint16_t* kept(int block, int position, size_t offset) {
        uint8_t* rows = model_.kv + block * model_.kv_block_bytes + offset;
        return reinterpret_cast<uint16_t*>(rows) + static_cast<size_t>(position % kLanes) * model_.hidden_stride;
    }

    // 16 floats, rounded to their upper halves.
    static void keep_halves(const float* from, uint16_t* to) {
        for (int i = 0; i < kLanes; ++i) {
            uint32_t bits;
            __builtin_memcpy(&bits, from + i, 4);
            to[i] = static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
        }
    }
};

}  // namespace
}  // namespace axon
