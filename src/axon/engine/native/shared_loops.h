// Loops that the threads of a team share out among themselves. Knows no model.
#pragma once

namespace axon {
namespace {

// Every thread has one for each step, with the same counters, and makes the same calls in the same order, so that they
// agree on which counter belongs to which loop.
class SharedLoops {
 public:
    SharedLoops(int32_t* counters, int counter_stride, int num_threads, int thread)
        : counters_(counters), counter_stride_(counter_stride), num_threads_(num_threads), thread_(thread) {}

    // Shares out [0, count) over the team, a range to each thread, so that it finds its next weights foreseen and its last
    // results in its cache; who is done helps the others.
    template <class Task>
    void share(int count, Task task) {
        if (num_threads_ == 1) {
            for (int i = 0; i < count; ++i) task(i);
            return;
        }
        int32_t* counter = counters_ + next_counter_++;
        for (int helped = 0; helped < num_threads_; ++helped) {
            const int64_t range = (thread_ + helped) % num_threads_;
            const int start = static_cast<int>(range * count / num_threads_);
            const int end = static_cast<int>((range + 1) * count / num_threads_);
            for (;;) {
                const int i = start + __atomic_fetch_add(counter + range * counter_stride_, 1, __ATOMIC_RELAXED);
                if (i >= end) break;
                task(i);
            }
        }
    }

 private:
    int32_t* counters_;
    const int counter_stride_, num_threads_, thread_;
    int next_counter_ = 0;
};

}  // namespace
}  // namespace axon
