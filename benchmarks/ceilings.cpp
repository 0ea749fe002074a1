// What a machine can do at most: bytes read from memory and int8 products a second, for each instruction that it has.
// A program of its own, which shares nothing with the kernels: ceilings THREADS prints one JSON object.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#if defined(__aarch64__)
#include <sys/auxv.h>
#elif defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace {

constexpr int kRounds = 7;  // the best counts: other work on the machine only ever takes away

double seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Seconds that all threads together take for work(thread), the best of some rounds.
template <class Work>
double best_seconds(int num_threads, Work work) {
    double best = 1e9;
    for (int round = 0; round < kRounds; ++round) {
        std::vector<std::thread> threads;
        const double started = seconds();
        for (int thread = 1; thread < num_threads; ++thread) threads.emplace_back([&, thread] { work(thread); });
        work(0);
        for (std::thread& thread : threads) thread.join();
        const double took = seconds() - started;
        if (took < best) best = took;
    }
    return best;
}

std::atomic<uint64_t> sink{0};  // so that what is read counts as used

void read_all(const uint64_t* from, size_t count) {
    uint64_t sums[16] = {};
    for (size_t i = 0; i < count; i += 16)
        for (int lane = 0; lane < 16; ++lane) sums[lane] += from[i + lane];
    for (uint64_t sum : sums) sink += sum;
}

double memory_gb_s(int num_threads) {
    constexpr size_t kWords = size_t{24} << 20;  // 192 MB each: far more than a cache
    std::vector<std::vector<uint64_t>> parts(num_threads);
    for (auto& part : parts) part.assign(kWords, 1);
    return num_threads * kWords * 8 / 1e9 / best_seconds(num_threads, [&](int thread) {
        read_all(parts[thread].data(), kWords);
    });
}

struct Instruction {
    const char* name;
    bool (*is_here)();
    void (*run)(long count);  // so many loops
    double products;          // of one loop
};

constexpr long kLoops = 1000000;

#if defined(__aarch64__)
bool has_dotprod() { return getauxval(AT_HWCAP) & (1UL << 20); }
bool has_i8mm() { return getauxval(AT_HWCAP2) & (1UL << 13); }

#define SIXTEEN(X) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15) X(16) X(17) X(18) X(19) X(20) X(21) X(22) X(23)
#define CLOBBERED \
    "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "cc"
#define SDOT(n) ".inst 0x4e819400 + " #n "\n"   // sdot vN.4s, v0.16b, v1.16b; as numbers, for any assembler
#define SMMLA(n) ".inst 0x4e81a400 + " #n "\n"  // smmla vN.4s, v0.16b, v1.16b

void run_sdot(long count) {
    asm volatile("1:\n" SIXTEEN(SDOT) "subs %0, %0, #1\nb.ne 1b\n" : "+r"(count)::CLOBBERED);
}
void run_smmla(long count) {
    asm volatile("1:\n" SIXTEEN(SMMLA) "subs %0, %0, #1\nb.ne 1b\n" : "+r"(count)::CLOBBERED);
}

const Instruction kInstructions[] = {
    {"sdot", has_dotprod, run_sdot, 16 * 16},
    {"smmla", has_i8mm, run_smmla, 16 * 32},
};
#elif defined(__x86_64__)
bool has_avx2() { return __builtin_cpu_supports("avx2"); }
bool has_vnni() { return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vnni"); }
bool has_amx() {
    unsigned a, b, c, d = 0;
    __get_cpuid_count(7, 0, &a, &b, &c, &d);
    return (d >> 24 & 3) == 3 && syscall(SYS_arch_prctl, 0x1023, 18) == 0;
}

#define TWELVE(X) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13)
#define CLOBBERED \
    "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "cc"
#define PAIRS(n) \
    "vpmaddubsw %%ymm0, %%ymm1, %%ymm14\nvpmaddwd %%ymm0, %%ymm14, %%ymm14\nvpaddd %%ymm14, %%ymm" #n ", %%ymm" #n "\n"
#define VPDPBUSD(n) "vpdpbusd %%zmm0, %%zmm1, %%zmm" #n "\n"

void run_pairs(long count) {
    asm volatile("1:\n" TWELVE(PAIRS) "dec %0\njnz 1b\nvzeroupper\n" : "+r"(count)::CLOBBERED);
}
void run_vpdpbusd(long count) {
    asm volatile("1:\n" TWELVE(VPDPBUSD) "dec %0\njnz 1b\nvzeroupper\n" : "+r"(count)::CLOBBERED);
}
void run_tdpbssd(long count) {
    struct alignas(64) {
        uint8_t palette = 1, first_row = 0, reserved[14] = {};
        uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
        uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
    } shapes;
    asm volatile(
        "ldtilecfg %1\n1:\n"
        "tdpbssd %%tmm6, %%tmm4, %%tmm0\ntdpbssd %%tmm7, %%tmm4, %%tmm1\n"
        "tdpbssd %%tmm6, %%tmm5, %%tmm2\ntdpbssd %%tmm7, %%tmm5, %%tmm3\n"
        "dec %0\njnz 1b\ntilerelease\n"
        : "+r"(count)
        : "m"(shapes)
        : "cc");
}

const Instruction kInstructions[] = {
    {"vpmaddubsw", has_avx2, run_pairs, 12 * 32},
    {"vpdpbusd", has_vnni, run_vpdpbusd, 12 * 64},
    {"tdpbssd", has_amx, run_tdpbssd, 4 * 16 * 16 * 64},
};
#else
const Instruction kInstructions[] = {{"none", [] { return false; }, [](long) {}, 0}};
#endif

}  // namespace

int main(int argc, char** argv) {
    const int num_threads = argc > 1 ? std::atoi(argv[1]) : 1;
    std::printf("{\"threads\": %d, \"memory_gb_s\": %.1f, \"int8_gmac_s\": {", num_threads, memory_gb_s(num_threads));
    const char* separator = "";
    for (const Instruction& each : kInstructions) {
        if (!each.is_here()) continue;
        const long loops = each.products > 10000 ? kLoops / 10 : kLoops;
        const double took = best_seconds(num_threads, [&](int) { each.run(loops); });
        std::printf("%s\"%s\": %.0f", separator, each.name, num_threads * loops * each.products / took / 1e9);
        separator = ", ";
    }
    std::printf("}}\n");
}
