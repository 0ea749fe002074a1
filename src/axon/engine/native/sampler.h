// What the sampler computes on: requests, answers, and the passes over a row's scores that are compiled once for each
// instruction set. Plain data, no code.
#pragma once

#include <cstdint>

namespace axon {

constexpr int kBlock = 64;  // scores whose maximum and sum are kept together; the order of all sums follows from it

// One row's parameters, as native/sampler.py packs them.
struct Request {
    double temperature;  // 0 is greedy
    double top_p;
    double min_p;
    double presence_penalty;
    double frequency_penalty;
    double repetition_penalty;
    uint64_t seed;
    uint64_t choice;
    uint64_t position;
    const uint32_t* mask;  // a bit for each token that a grammar allows, or null
    int32_t row;           // of the logits
    int32_t top_k;         // 0 keeps all
    int32_t num_logprobs;  // -1 for none, 0 for the token's own
    int32_t given;         // a token to score, or -1
    int32_t first_id;      // of its ids: those of the biases, the prompt, the output, the banned ones
    int32_t num_biases;
    int32_t num_prompt;
    int32_t num_output;
    int32_t num_banned;
    int32_t first_bias;
};

struct Answer {
    double logprob;
    int32_t token;
    int32_t num_top;
    int32_t rank;  // of a given token among all, from 1; else 0
    int32_t unused;
};

// A token's weight is 2^((score - peak) * inverse): 1 at the peak, 0 where it would be less than 2^-126.
struct Softmax {
    float peak;
    float inverse;
};

// The last token that stays, in the order of the ranking: the highest score first, the lowest id among equals.
struct Cut {
    float score;
    int32_t id;
};

struct Passes {
    // The largest score of each block.
    void (*tops)(const float* scores, int count, float* tops);
    // The sum of each block's weights, without those behind the cut; 0 where no weight is above 2^-53.
    void (*sums)(const float* scores, int count, const float* tops, Softmax softmax, Cut cut, float* sums);
    void (*weigh)(const float* scores, int count, Softmax softmax, float* weights);
    // The sum of the weights of scores from `lowest` on.
    double (*sum_from)(const float* scores, const float* weights, int count, float lowest);
};

}  // namespace axon
