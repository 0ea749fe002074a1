// Which instruction sets the machine and its system allow. Compiled for every machine of the architecture.

#include "instruction_sets.h"

#include <cstring>

#if defined(__aarch64__)
#include <sys/auxv.h>
#elif defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace axon {

void step_scalar(const Model&, const Step&, int thread);
#if defined(__aarch64__)
void step_neon(const Model&, const Step&, int thread);
void step_i8mm(const Model&, const Step&, int thread);
#elif defined(__x86_64__)
void step_avx2(const Model&, const Step&, int thread);
void step_avx512(const Model&, const Step&, int thread);
void step_amx(const Model&, const Step&, int thread);
#endif

void encode_scalar(const EncoderModel&, const Pass&, int thread);
#if defined(__aarch64__)
void encode_neon(const EncoderModel&, const Pass&, int thread);
void encode_i8mm(const EncoderModel&, const Pass&, int thread);
#elif defined(__x86_64__)
void encode_avx2(const EncoderModel&, const Pass&, int thread);
void encode_avx512(const EncoderModel&, const Pass&, int thread);
void encode_amx(const EncoderModel&, const Pass&, int thread);
#endif

namespace {

bool always() { return true; }

#if defined(__aarch64__)
bool has_dotprod() { return getauxval(AT_HWCAP) & (1UL << 20); }  // HWCAP_ASIMDDP
[[maybe_unused]] bool has_i8mm() { return has_dotprod() && getauxval(AT_HWCAP2) & (1UL << 13); }  // HWCAP2_I8MM
#elif defined(__x86_64__)
bool has_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
bool has_vnni() {
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vnni");
}

// The tiles' 8 KB of registers are lent to a process that asks for them: an older kernel, or a strict one, says no.
bool may_use_tiles() {
    constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
    return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

[[maybe_unused]] bool has_amx() {
    unsigned a, b, c, d = 0;
    const bool found = __get_cpuid_count(7, 0, &a, &b, &c, &d);
    const bool has_tiles = d & (1u << 24), has_int8 = d & (1u << 25);
    return found && has_tiles && has_int8 && has_vnni() && may_use_tiles();
}
#endif

// The best first. What the compiler did not know is not there.
const InstructionSet kInstructionSets[] = {
#if defined(__aarch64__)
#if defined(AXON_HAS_I8MM)
    {"neon-i8mm", step_i8mm, encode_i8mm, has_i8mm},
#endif
    {"neon-dotprod", step_neon, encode_neon, has_dotprod},
#elif defined(__x86_64__)
#if defined(AXON_HAS_AMX)
    {"amx-int8", step_amx, encode_amx, has_amx},
#endif
    {"avx512-vnni", step_avx512, encode_avx512, has_vnni},
    {"avx2", step_avx2, encode_avx2, has_avx2},
#endif
    {"scalar", step_scalar, encode_scalar, always},
};

}  // namespace

const InstructionSet* find(const char* name) {
    for (const InstructionSet& set : kInstructionSets)
        if (set.is_here() && (!*name || !std::strcmp(name, set.name))) return &set;
    return nullptr;
}

}  // namespace axon
