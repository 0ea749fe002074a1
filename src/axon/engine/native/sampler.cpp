// The C interface of the sampler: draws tokens from rows of logits, one row at a time in each of a team's threads.
// Compiled for every machine; the passes over a row are in passes.cpp, of which the best compiled ones are chosen here.

#include <atomic>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#if defined(__aarch64__)
#include <sys/auxv.h>
#endif

#include "row_sampler.h"
#include "team.h"

namespace axon {

extern const Passes passes_scalar;
#if defined(__aarch64__)
extern const Passes passes_neon;
#elif defined(__x86_64__)
extern const Passes passes_avx2;
extern const Passes passes_avx512;
#endif

namespace {

struct NamedPasses {
    const char* name;
    const Passes* passes;
    bool (*is_here)();
};

// The same machines for which kernel.cpp chooses the tile: its flags hold for the passes too.
#if defined(__aarch64__)
bool has_dotprod() { return getauxval(AT_HWCAP) & (1UL << 20); }  // HWCAP_ASIMDDP
#elif defined(__x86_64__)
bool has_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
bool has_avx512() {
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vnni");
}
#endif

// The best first; the names are those of the tiles.
const NamedPasses kAllPasses[] = {
#if defined(__aarch64__)
    {"neon", &passes_neon, has_dotprod},
#elif defined(__x86_64__)
    {"avx512", &passes_avx512, has_avx512},
    {"avx2", &passes_avx2, has_avx2},
#endif
    {"scalar", &passes_scalar, [] { return true; }},
};

const Passes* find_passes(const char* name) {
    for (const NamedPasses& each : kAllPasses)
        if (each.is_here() && (!*name || !std::strcmp(name, each.name))) return each.passes;
    return nullptr;
}

struct Work {
    float* logits;
    const Request* requests;
    int num_requests;
    const int32_t* ids;
    const double* biases;
    Answer* answers;
    int32_t* top_ids;
    double* top_logprobs;
    int top_stride;
};

class Sampler {
 public:
    // The team is the caller's, and stays so.
    Sampler(Team* team, const Passes& passes, int vocab) : team_(team), vocab_(vocab) {
        for (int thread = 0; thread < team->size(); ++thread)
            rows_.push_back(std::make_unique<RowSampler>(passes, vocab));
    }

    void run(const Work& work) {
        work_ = work;
        next_.store(0);
        for (int i = 0; i < work.num_requests; ++i)
            for (auto& row : rows_) row->reserve(work.requests[i]);  // so that no thread runs out of memory
        if (work.num_requests == 1)
            take_requests(0);
        else
            team_->run([](void* self, int thread) { static_cast<Sampler*>(self)->take_requests(thread); }, this);
    }

 private:
    Team* const team_;
    const int vocab_;
    std::vector<std::unique_ptr<RowSampler>> rows_;
    Work work_{};
    std::atomic<int> next_{0};

    void take_requests(int thread) {
        for (int i; (i = next_.fetch_add(1)) < work_.num_requests;) {
            const Request& request = work_.requests[i];
            const size_t top = static_cast<size_t>(i) * work_.top_stride;
            rows_[thread]->sample(work_.logits + static_cast<size_t>(request.row) * vocab_, request, work_.ids,
                                  work_.biases, work_.answers[i], work_.top_ids + top, work_.top_logprobs + top);
        }
    }
};

}  // namespace
}  // namespace axon

using axon::Sampler;
using axon::Team;

#define AXON_API extern "C" __attribute__((visibility("default")))

AXON_API int axon_request_bytes() { return sizeof(axon::Request); }

// Threads for a sampler without a model; null when there are none.
AXON_API Team* axon_create_team(int num_threads) {
    try {
        return new Team(num_threads);
    } catch (...) {
        return nullptr;
    }
}

AXON_API void axon_destroy_team(Team* team) { delete team; }

// Null when memory is short or the passes ("" for the best) are not here. The team must outlive the sampler.
AXON_API Sampler* axon_create_sampler(Team* team, int vocab, const char* passes) {
    const axon::Passes* found = axon::find_passes(passes);
    if (!found) return nullptr;
    try {
        return new Sampler(team, *found, vocab);
    } catch (...) {
        return nullptr;
    }
}

AXON_API void axon_destroy_sampler(Sampler* sampler) { delete sampler; }

// Answers each request, of rows of its own; the i-th one's likeliest tokens stand at i * top_stride. The logits are
// changed meanwhile. Returns 0, or -1 when memory is short.
AXON_API int axon_sample(Sampler* sampler, float* logits, const axon::Request* requests, int num_requests,
                          const int32_t* ids, const double* biases, axon::Answer* answers, int32_t* top_ids,
                          double* top_logprobs, int top_stride) {
    try {
        sampler->run({logits, requests, num_requests, ids, biases, answers, top_ids, top_logprobs, top_stride});
    } catch (const std::bad_alloc&) {
        return -1;
    }
    return 0;
}
