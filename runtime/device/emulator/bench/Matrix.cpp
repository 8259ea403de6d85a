#include "runtime/device/emulator/bench/Matrix.h"

#include "runtime/device/emulator/EmulatorDevice.h"

#include <algorithm>
#include <ctime>

namespace kiln::bench {

namespace {

double cpuSeconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

struct MatrixKernel {
  std::string name, text;
  unsigned threads;
  double flops; ///< of a launch
};

constexpr unsigned rounds = 64, productsOfRound = 4;

/// A warpgroup's loop of groups of four products on tiles with a 128-byte swizzle.
MatrixKernel warpgroupLoop(unsigned n, const std::string &types, unsigned k, bool registers) {
  std::string d, products, stores;
  for (unsigned i = 0; i < n / 2; ++i) {
    d += (i ? ",%d" : "%d") + std::to_string(i);
    stores += "st.shared.b32 [%r10+" + std::to_string(i % 64 * 512) + "], %d" + std::to_string(i) + ";\n";
  }
  const std::string shape = "m64n" + std::to_string(n) + "k" + std::to_string(k);
  for (unsigned i = 0; i < productsOfRound; ++i)
    products += "wgmma.mma_async.sync.aligned." + shape + "." + types + " {" + d + "}, " +
                (registers ? "{%r4,%r5,%r6,%r7}" : "%rd1") + ", %rd2, %p1" +
                (types.starts_with("s32") ? "" : ", 1, 1") + (k == 16 ? registers ? ", 0" : ", 0, 0" : "") + ";\n";
  MatrixKernel m;
  m.name = "wgmma " + shape + " " + types + (registers ? ", A in registers" : ", A in shared memory");
  m.threads = 128;
  m.flops = 2.0 * 64 * n * k * rounds * productsOfRound;
  // Values: bf16 of about 1 and -2, which differ from element to element.
  m.text = R"(.version 8.5
.target sm_90a
.address_size 64
.visible .entry k() {
.reg .b32 %r<16>; .reg .b64 %rd<8>; .reg .pred %p<4>; .reg .b32 %d<)" +
           std::to_string(n / 2) + R"(>;
.shared .align 1024 .b8 tile[40960];
mov.u32 %r0, %tid.x; mov.u32 %r1, tile; mad.lo.u32 %r1, %r0, 4, %r1; mov.u32 %r10, %r1; mov.u32 %r2, 0;
FILL: mad.lo.u32 %r3, %r2, 0x00310007, %r0; and.b32 %r3, %r3, 0x803f803f; or.b32 %r3, %r3, 0x3f803f80;
st.shared.b32 [%r1], %r3; add.u32 %r1, %r1, 512; add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, 80; @%p2 bra FILL;
mov.b32 %r4, %r3; mov.b32 %r5, 0x3f813f82; mov.b32 %r6, %r3; mov.b32 %r7, 0xbf81bf83;
fence.proxy.async; bar.sync 0;
mov.u32 %r8, tile; shr.u32 %r8, %r8, 4; cvt.u64.u32 %rd1, %r8; or.b64 %rd1, %rd1, 0x4000004000010000;
add.u64 %rd2, %rd1, 512;
mov.u32 %r9, 0;
LOOP: setp.ne.u32 %p1, %r9, 0;
wgmma.fence.sync.aligned;
)" + products +
           R"(
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;
add.u32 %r9, %r9, 1; setp.lt.u32 %p3, %r9, )" +
           std::to_string(rounds) + R"(; @%p3 bra LOOP;
bar.sync 0;
)" + stores +
           "ret;\n}\n";
  return m;
}

} // namespace

Result<std::vector<MatrixRate>> measureMatrix(const std::string &cpuLevel, unsigned repeat) {
  std::vector<MatrixKernel> kernels;
  for (const bool registers : {false, true})
    for (const unsigned n : {128u, 256u})
      kernels.push_back(warpgroupLoop(n, "f32.bf16.bf16", 16, registers));
  kernels.push_back(warpgroupLoop(128, "f32.e4m3.e4m3", 32, false));
  kernels.push_back(warpgroupLoop(128, "f32.tf32.tf32", 8, false));
  kernels.push_back(warpgroupLoop(128, "s32.s8.s8", 32, false));
  std::vector<MatrixRate> out;
  struct Setting {
    MatrixMode mode;
    bool checks;
  };
  constexpr Setting settings[] = {
      {MatrixMode::Exact, false}, {MatrixMode::Exact, true}, {MatrixMode::Fast, false}, {MatrixMode::Fast, true}};
  for (const MatrixKernel &m : kernels)
    for (const auto [mode, checks] : settings) {
      EmulatorOptions options;
      options.checks = checks;
      options.hostThreads = 1;
      options.cpuLevel = cpuLevel;
      options.mma = mode;
      auto device = createEmulatorDevice(**findTarget("sm_90a"), options);
      if (!device)
        return device.status();
      auto module = (*device)->loadPtx(m.text, "matrix.ptx");
      if (!module)
        return module.status();
      auto kernel = (*module)->kernel("k");
      if (!kernel)
        return kernel.status();
      LaunchConfig config;
      config.block = {m.threads};
      MatrixRate rate{m.name, mode, checks, 0};
      for (unsigned i = 0; i < repeat; ++i) {
        const double begin = cpuSeconds();
        if (const Status s = (*kernel)->launch(config, {}); !s.ok())
          return s;
        rate.flops = std::max(rate.flops, m.flops / (cpuSeconds() - begin));
      }
      for (const Finding &f : (*device)->takeFindings())
        return Status(StatusCode::DeviceError, m.name + ": unexpected finding " + f.id + ": " + f.message);
      out.push_back(rate);
    }
  return out;
}

} // namespace kiln::bench
