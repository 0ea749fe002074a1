// What the kernels compute on: a model's shape and weights, its paged KV, one step's rows. Plain data, no code:
// this header is compiled several times with different instruction sets.
#pragma once

#include <cstddef>
#include <cstdint>

namespace axon {

constexpr int kLanes = 16;           // outputs of a weight panel, and tokens of a KV block
constexpr int kGroup = AXON_GROUP;   // consecutive inputs that share a scale, of a row and of an output's weights
constexpr int kTasksPerLayer = 16;   // at most this many shared loops in a layer
constexpr int kQueriesPerItem = 4;   // query tokens whose attention is computed together
constexpr int kPartBlocks = kLanes;  // KV blocks of a part of the past, which has a softmax of its own
constexpr int kPartTokens = kPartBlocks * kLanes;
constexpr int kRowPadding = 16;      // buffers of rows are a multiple of this long: a wide tile may read, not use, the last
constexpr int kMaxExperts = 1024;    // of a layer
constexpr int kOwnQuantisedRows = 4; // up to here every thread quantises for itself, which saves a meeting

constexpr int round_up(int count, int multiple) { return (count + multiple - 1) / multiple * multiple; }

struct Shape {
    int32_t vocab;
    int32_t hidden;
    int32_t intermediate;
    int32_t layers;
    int32_t heads;
    int32_t kv_heads;
    int32_t head_dim;
    float norm_epsilon;
    float query_scale;           // attention scores are multiplied by this
    float embedding_scale;       // and embeddings by this
    int32_t rotary;              // dimensions of a head that are rotated, from its first on
    int32_t activation;          // of gates: 0 is SiLU, 1 GELU by tanh
    int32_t experts;             // of a layer that has any; 0: no layer has
    int32_t experts_per_token;
    int32_t expert_intermediate;
    int32_t normalises_experts;  // whether the weights of a token's experts are scaled to a sum of 1
    float gate_limit;            // gates above it and ups beyond it are clamped, and 1 is added to ups; 0: neither
    float gate_slope;            // the activation of gates is then gate * sigmoid(slope * gate)
    int32_t head_bytes;          // of a block, behind its keys and values: what a draft head keeps there
};

// int8 weights with a scale per output and group of inputs. A panel holds 16 outputs: [inputs / 4][output][4], so that
// one vector of 4 inputs of a row meets 16 outputs, and sums never cross lanes. Its scales are [group][output], each the
// upper half of a float. Outputs and inputs are padded with zeros.
struct Linear {
    const int8_t* panels;
    const uint16_t* scales;
    const float* bias;  // or null
    int32_t num_panels;
    int32_t num_inputs;
};

struct Expert {
    Linear gate_up, down;
};

struct Layer {
    Linear qkv, output, gate_up, down;  // gate and up take turns, panel by panel
    Expert* experts;      // in place of gate_up and down, or null
    const float* router;  // of the experts: panels of 16, [expert / 16][input][16]
    const float* router_bias;  // or null
    const float* input_norm;
    const float* mlp_norm;
    const float* query_norm;  // or null; so are the next three
    const float* key_norm;
    const float* attention_post;  // norm of attention's output, before it is added to the hidden rows
    const float* mlp_post;        // likewise
    const float* sinks;       // of each head, a score that takes part in every softmax; or null
    const float* rope_cos;    // [position][rotary / 2]
    const float* rope_sin;
    int32_t window;           // tokens that a query sees, its own included; 0: all
    int32_t skipped;          // tokens at the start that later ones do not see
};

// Where the outputs of a panel find their part of an adapter's second product.
struct Slice {
    int32_t first;   // of the first product's outputs, the first that this panel takes
    int32_t count;   // 0 where the adapter changes nothing here
    int64_t offset;  // of the panel's numbers in `up`
};

// What a LoRA adapter adds to a product: up x (down x input), both in float. The modules whose outputs stand side by side
// in the product have their first products side by side too, and each panel takes its own modules' part.
struct LowRank {
    const float* down;    // [input][rank], null where the adapter changes nothing; inputs without their padding
    const float* up;      // by panel: [count][output]
    const Slice* slices;  // by panel
    int32_t num_inputs;
    int32_t rank;         // of all modules together, in whole vectors
};

struct Adapter {
    LowRank* products;  // [layer][product]
};

constexpr int kProducts = 4;    // of a layer: qkv, output, gate_up, down
constexpr int kNoProduct = -1;  // one that no adapter changes

constexpr int kFeatures = 3;  // layers whose inputs a draft head takes

// A draft head as its target sees it: in every step, the inputs of three layers are fused into a row of the head for each
// token, which stays in the token's block. Null panels: there is none.
struct Taps {
    Linear fuse;  // of kFeatures x hidden inputs
    int32_t layers[kFeatures];
    size_t offset;  // in a block: [token][hidden], the upper halves of floats
};

struct Model {
    Shape shape;
    Layer* layers;
    Linear embedding;  // rows are read from it one by one
    Linear head;
    const float* final_norm;
    Taps taps;

    // Of a draft head, which is a model of one layer: norm of the embedding that stands before a row in the layer's input;
    // else null. Its rows come from its target's blocks, in which its keys and values are as well.
    const float* embedding_norm;
    size_t rows_offset;

    // Sizes with their padding.
    int32_t hidden_stride;
    int32_t heads_stride;         // of a row of attention output
    int32_t intermediate_stride;
    int32_t qkv_stride;
    int32_t dim_stride;           // a head as keys and values are kept

    // [block][layer][kv head]: keys [dim / 4][token][4], values [dim / 16][token / 4][16][4], both as panels are,
    // then 16 key scales and 16 value scales. A block's bytes are in one piece.
    uint8_t* kv;
    size_t kv_head_bytes;
    size_t kv_layer_bytes;
    size_t kv_block_bytes;
};

// Rows as int8, one scale per row and group.
struct QuantisedRows {
    int8_t* values;
    float* scales;
    int32_t* starts;       // where the sum of a row's group begins; see start_of in the tiles
    int32_t stride;        // bytes of a row
    int32_t scale_stride;  // groups of a row
};

struct Item {  // consecutive queries of one span
    int32_t span;
    int32_t first_row;
    int32_t num_rows;
};

// The experts of each row by their numbers, and their weights: [row][experts per token] each.
struct Choices {
    int32_t* experts;
    float* weights;
};

// The pairs of a row and one of its experts, by expert and then by row, as one thread has them.
struct Routes {
    int32_t* starts;  // first pair of each expert, and the number of pairs at the end
    int32_t* next;    // of each expert, while they are sorted
    int32_t* active;  // the experts that have pairs
    int32_t* rows;    // of each pair; so is the next
    float* weights;
};

class Team;

// What an item's queries see through one KV head of each part of their past. A row here is a query x one head of the KV
// head's share.
struct Parts {
    float* peaks;   // [row][part]: the largest score
    float* sums;    // [row][part]: of the softmax, the largest score being 0
    float* values;  // [part][row][dim]: weighted by that softmax
};

// What one thread has for itself.
struct Scratch {
    QuantisedRows quantised;
    Parts parts;            // of the item at hand
    uint8_t** blocks;       // of the part at hand
    float* scores;          // [row][token of the part]
    int8_t* weights;        // softmax as int8
    float* weight_scales;   // one per block of 16 tokens
    int8_t* queries;
    float* query_scales;
    int32_t* query_starts;
    float* tile;            // [row][output] of one unit of a product
    Choices choices;        // of few rows; so is the next
    QuantisedRows gathered;
    Routes routes;
    float* best_value;      // of each output row, so far
    int32_t* best_token;
    float* best_sum;        // of e^(logit - the best one), with heats
};

struct Step {
    const int32_t* tokens;
    const int32_t* positions;
    int32_t num_rows;
    const int32_t* span_starts;  // num_spans + 1 rows
    int32_t num_spans;
    const int32_t* block_ids;    // of all spans, one behind the other
    const int32_t* table_starts; // where each span's begin
    const int32_t* output_rows;
    int32_t num_outputs;
    float* logits;               // [output row][vocab], or null
    const Adapter* const* adapters;  // of each row, or null for it; null where no row has one
    const int32_t* row_blocks;   // of each row, where a head's row is kept or read; -1: nowhere
    const float* given;          // a head's rows in place of those in blocks, or null
    const float* heats;          // of each output row: its logits are multiplied by this for its confidence; or null

    float* low;                  // [row][low_stride]: the adapters' first products, of one product at a time
    int32_t low_stride;
    float* hidden;
    float* qkv;
    float* seen;                 // attention's output
    float* branch;               // a block's output that is normalised before it is added
    QuantisedRows input;         // of qkv, output and gate_up in turn
    QuantisedRows inner;         // of down
    QuantisedRows features;      // of the taps
    Choices choices;
    QuantisedRows gathered;      // input of the experts, by pair; so is the next
    QuantisedRows expert_inner;
    const Item* items;
    int32_t num_items;
    bool one_row_spans;          // a decode step: an item can write its own keys and values
    bool together;               // few items: their parts are shared out, not the items
    Parts* parts;                // [item][kv head], for that
    int32_t num_parts;           // of the longest span
    int32_t part_stride;         // the same in whole vectors

    Scratch* scratch;            // by thread
    int32_t* counters;           // [thread][shared loop], zero before the step
    int32_t counter_stride;
    int32_t num_threads;
    Team* team;
};

// Small enough, and called often enough, that a call would cost more than the work.
#define AXON_INLINE inline __attribute__((always_inline))

// Defined in kernel.cpp, which is compiled for every machine: the team's threads wait here for each other.
void meet(Team* team);

// One per instruction set, each in its own object file.
using StepFunction = void (*)(const Model&, const Step&, int thread);

}  // namespace axon
