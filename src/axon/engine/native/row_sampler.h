// One row's way from logits to a token: adjustments, truncation, the draw, log probabilities. Compiled for every
// machine; what takes time is in the passes. Knows no threads: each has a RowSampler of its own.
//
// A row is its own to the bit: sums within a block have one shape, blocks are added in order in double precision, and
// which of the ways below is taken is decided by the row's own scores.
#pragma once

#include <cmath>

#include "adjustments.h"
#include "ranking.h"

namespace axon {

constexpr double kLog2E = 1.4426950408889634;

inline uint64_t mix(uint64_t value) {  // SplitMix64, as sample/uniform.py has it
    value += 0x9E3779B97F4A7C15u;
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9u;
    value = (value ^ (value >> 27)) * 0x94D049BB133111EBu;
    return value ^ (value >> 31);
}

// The number in [0, 1) of an output position of a choice.
inline double uniform(const Request& request) {
    const uint64_t state = mix(mix(mix(request.seed) ^ request.choice) ^ request.position);
    return static_cast<double>(state >> 11) * 0x1p-53;
}

// The natural logarithm of a positive number, the same on every machine, which that of libm need not be.
inline double logarithm(double x) {
    int exponent;
    double m = std::frexp(x, &exponent);
    if (m < 0.70710678118654752) m *= 2, --exponent;
    const double s = (m - 1) / (m + 1), square = s * s;
    double series = 0;
    for (int k = 23; k >= 1; k -= 2) series = series * square + 1.0 / k;
    return exponent * 0.69314718055994531 + 2 * s * series;
}

class RowSampler {
 public:
    RowSampler(const Passes& passes, int vocab)
        : row_(passes, vocab), adjustments_(row_), ranking_(row_), sums_(row_.num_blocks) {}

    void reserve(const Request& request) { adjustments_.reserve(request); }

    // Adjusts the logits in place, and leaves them as they were. Log probabilities are those of the row as it came.
    void sample(float* logits, const Request& request, const int32_t* ids, const double* biases, Answer& answer,
                int32_t* top_ids, double* top_logprobs) {
        row_.look_at(logits);
        whole_inverse_ = 0;
        const double log_sum = request.num_logprobs >= 0 ? log_sum_of_all() : 0;
        answer.num_top = request.num_logprobs > 0 ? rank(request.num_logprobs, log_sum, top_ids, top_logprobs) : 0;
        answer.token = request.given >= 0 ? std::min(request.given, row_.vocab - 1) : choose(request, ids, biases);
        answer.logprob = logits[answer.token] - log_sum;
        answer.rank = request.given >= 0 ? row_.rank_of(answer.token) : 0;
    }

 private:
    Row row_;
    Adjustments adjustments_;
    Ranking ranking_;
    std::vector<float> sums_;  // of the weights of each block
    float whole_inverse_ = 0;  // what whole_total_ was summed with; 0 while it is not known
    double whole_total_ = 0;

    double log_sum_of_all() { return row_.peak + logarithm(total_of_all(static_cast<float>(kLog2E))); }

    // Writes the likeliest tokens, the most likely first; returns how many there are.
    int rank(int count, double log_sum, int32_t* ids, double* logprobs) {
        const Candidate* first = ranking_.first(count);
        for (int i = 0; i < count; ++i) {
            ids[i] = first[i].id;
            logprobs[i] = first[i].score - log_sum;
        }
        return count;
    }

    int choose(const Request& request, const int32_t* ids, const double* biases) {
        if (adjustments_.apply(request, ids + request.first_id, biases + request.first_bias)) whole_inverse_ = 0;
        const int token = request.temperature > 0 ? draw(request) : row_.likeliest();
        adjustments_.undo();
        return token;
    }

    // Inverse transform sampling: the first id whose cumulative weight exceeds the row's number.
    int draw(const Request& request) {
        const Softmax softmax = {row_.peak, static_cast<float>(std::min(kLog2E / request.temperature, 1e30))};
        const Cut cut = truncate(request, softmax);
        const double total = cut.score == kLowest ? total_of_all(softmax.inverse) : total_of(softmax, cut);
        const double target = std::min(uniform(request) * total, std::nextafter(total, 0.0));
        double before = 0;
        for (int block = 0; block < row_.num_blocks; ++block) {
            if (before + sums_[block] > target) return draw_in(block, target - before, softmax, cut);
            before += sums_[block];
        }
        return row_.likeliest();  // only where scores are no numbers
    }

    int draw_in(int block, double rest, Softmax softmax, Cut cut) {
        float weights[kBlock];
        const int first = block * kBlock, count = std::min(kBlock, row_.vocab - first);
        row_.passes.weigh(row_.scores + first, count, softmax, weights);
        double cumulated = 0;
        int last = row_.likeliest();  // a block's sum may round above what its weights cumulate to
        for (int i = 0; i < count; ++i) {
            if (!(weights[i] > 0) || !stays(row_.scores[first + i], first + i, cut)) continue;
            cumulated += weights[i];
            last = first + i;
            if (cumulated > rest) break;
        }
        return last;
    }

    // Sums the weights of the row, with the blocks' sums left in sums_.
    double total_of(Softmax softmax, Cut cut) {
        row_.passes.sums(row_.scores, row_.vocab, row_.tops.data(), softmax, cut, sums_.data());
        double total = 0;
        for (float sum : sums_) total += sum;
        return total;
    }

    double total_of_all(float inverse) {
        if (whole_inverse_ == inverse) return whole_total_;
        whole_total_ = total_of({row_.peak, inverse}, kNoCut);
        whole_inverse_ = inverse;
        return whole_total_;
    }

    Cut truncate(const Request& request, Softmax softmax) {
        Cut cut = kNoCut;
        if (request.top_k > 0 && request.top_k < row_.vocab) cut = ranking_.cut_at_count(request.top_k);
        if (request.min_p > 0) {
            const double lowest = row_.peak + request.temperature * logarithm(std::min(request.min_p, 1.0));
            cut = stricter(cut, {static_cast<float>(lowest), INT_MAX});
        }
        if (request.top_p < 1) {
            const double mass = cut.score == kLowest ? total_of_all(softmax.inverse) : total_of(softmax, cut);
            cut = stricter(cut, ranking_.cut_at_mass(request.top_p * mass, softmax));
        }
        return cut;
    }
};

}  // namespace axon
