// What the kernels of an encoder compute on: its shape and weights, and one pass over a batch of inputs. Plain data.
#pragma once

#include "model.h"

namespace axon {

enum Activation : int32_t { kGelu = 0, kGeluTanh = 1, kRelu = 2 };
enum Pooling : int32_t { kMean = 0, kFirst = 1, kMaximum = 2, kLast = 3 };

struct EncoderShape {
    int32_t hidden;
    int32_t intermediate;
    int32_t layers;
    int32_t heads;
    int32_t activation;
    int32_t pooling;
    int32_t normalises;  // vectors have length 1
    float norm_epsilon;

    AXON_INLINE int32_t head_dim() const { return hidden / heads; }
    AXON_INLINE int32_t stages() const { return 2 * layers; }  // attention and the MLP of each layer
};

// Weights as float32 panels of 16 outputs, [input][output], or, where they have scales, as int8 panels as in model.h.
struct EncoderLinear {
    const void* panels;
    const uint16_t* scales;  // or null
    const float* bias;
    int32_t num_panels;
    int32_t num_inputs;
};

struct LayerNorm {
    const float* weight;
    const float* bias;
};

struct EncoderLayer {
    EncoderLinear qkv, output, up, down;
    LayerNorm norm, last_norm;
};

struct EncoderModel {
    EncoderShape shape;
    EncoderLayer* layers;
    const float* words;      // [token][hidden]
    const float* positions;  // [position][hidden]
    const float* types;      // [type][hidden]
    LayerNorm embedding_norm;
};

// Rows that a product takes: as floats, and as int8 where the product's weights are.
struct EncoderRows {
    float* values;
    int32_t stride;
    QuantisedRows quantised;
};

// What one thread has for itself.
struct EncoderScratch {
    float* tile;     // [row][output] of one unit of a product
    float* keys;     // of one input and head: [token / 16][dim][16]
    float* values;   // [dim / 16][token][16]
    float* scores;   // [row][token]
};

struct Pass {
    const int32_t* tokens;
    const int32_t* positions;
    const int32_t* types;    // 0 for a single text or a pair's first, 1 for its second
    int32_t num_rows;
    const int32_t* starts;   // num_inputs + 1 rows
    int32_t num_inputs;
    int32_t first_stage;     // this call computes [first_stage, last_stage) of the pass
    int32_t last_stage;
    float* vectors;          // [input][hidden], written by the last stage

    EncoderRows hidden;      // of qkv and up
    EncoderRows seen;        // of output: what attention saw
    EncoderRows inner;       // of down
    float* qkv;              // [row][3 x hidden]
    float* sums;             // [row][hidden]: a product and what it is added to, before its norm

    EncoderScratch* scratch; // by thread
    int32_t* counters;       // [thread][shared loop], zero before the call
    int32_t counter_stride;
    int32_t num_threads;
    Team* team;
};

constexpr int kLoopsPerStage = 8;      // at most this many shared loops in a stage
constexpr int kEncoderStretch = 96;    // rows that pass a panel of weights while it is in the first-level cache
constexpr int kMostFloatRows = 12;     // of a tile, on any machine

// One per instruction set, each in its own object file.
using EncodeFunction = void (*)(const EncoderModel&, const Pass&, int thread);

}  // namespace axon
