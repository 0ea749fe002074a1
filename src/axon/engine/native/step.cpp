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
#include "float_tiles.h"
#include "numbers.h"
#include "shared_loops.h"
#include "walk.h"
#include "attention_block.h"
#include "mlp_block.h"
#include "tap_block.h"

namespace axon {
namespace {

class Decoder {
 public:
    Decoder(const Model& model, const Step& step, int thread)
        : walk_(model, step, thread), model_(model), shape_(model.shape), step_(step), scratch_(step.scratch[thread]),
          attention_(walk_), mlp_(walk_), taps_(walk_) {}

    void run() {
        walk_.share(step_.num_rows, [&](int row) {
            if (model_.embedding_norm)
                taps_.read(row);
            else
                walk_.embed_row(step_.tokens[row], walk_.hidden_of(row));
        });
        walk_.everyone_done();
        for (int layer = 0; layer < shape_.layers; ++layer) {
            taps_.look(layer);
            attention_.run(layer);
            mlp_.run(layer);
        }
        taps_.keep();
        if (step_.num_outputs > 0) head();
    }

 private:
    Walk walk_;
    const Model& model_;
    const Shape& shape_;
    const Step& step_;
    Scratch& scratch_;
    AttentionBlock attention_;
    MlpBlock mlp_;
    TapBlock taps_;

    void head() {
        const QuantisedRows input = walk_.quantise_rows(step_.num_outputs, [&](int row, const QuantisedRows& to) {
            walk_.normalise(walk_.hidden_of(step_.output_rows[row]), model_.final_norm, row, to);
        });
        for (int row = 0; row < step_.num_outputs; ++row) {
            scratch_.best_value[row] = -1e30f;
            scratch_.best_token[row] = 0;
            scratch_.best_sum[row] = 0;
        }
        constexpr int kUnit = 8;
        walk_.multiply(model_.head, input, step_.num_outputs, kUnit, kNoProduct, [&](int unit, int row, int count) {
            for (int j = 0; j < kUnit && unit * kUnit + j < model_.head.num_panels; ++j)
                for (int i = 0; i < count; ++i)
                    take_logits(unit * kUnit + j, scratch_.tile + (i * kUnit + j) * kLanes, row + i);
        });
        walk_.everyone_done();
    }

    // Adds e^(logit - the largest so far) to a row's sum: what the largest is divided by in a softmax.
    void add_weights(Lanes logits, float top, int row) {
        const Lanes heat = splat(step_.heats[row]);
        const float before = scratch_.best_value[row], peak = top > before ? top : before;
        alignas(64) float faded[kLanes];
        store(faded, exponential(splat(before - peak) * heat));
        scratch_.best_sum[row] =
            scratch_.best_sum[row] * faded[0] + sum(exponential((logits - splat(peak)) * heat));
    }

    // Stores 16 logits of a row where they are wanted, and remembers the largest; the lowest token wins a tie.
    void take_logits(int panel, const float* tile, int row) {
        const int first = panel * kLanes, count = smaller(kLanes, shape_.vocab - first);
        const Lanes logits = first_or(walk_.output_of(model_.head, tile, first), count, -1e30f);
        alignas(64) float values[kLanes];
        store(values, logits);
        if (step_.logits)
            __builtin_memcpy(step_.logits + static_cast<size_t>(row) * shape_.vocab + first, values, sizeof(float) * count);
        const float top = largest(logits);
        if (step_.heats) add_weights(logits, top, row);
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
    Decoder(model, step, thread).run();
}

}  // namespace axon
