// A CudaDevice over the fake driver, and a check that every test gives back what it took.
#ifndef KILN_TESTS_RUNTIME_FAKECUDAFIXTURE_H
#define KILN_TESTS_RUNTIME_FAKECUDAFIXTURE_H

#include "runtime/device/cuda/CudaDevice.h"
#include "tests/runtime/FakeDriver.h"

#include <gtest/gtest.h>

#include <cstring>

#include <dlfcn.h>

namespace kiln::test {

class FakeCudaTest : public testing::Test {
protected:
  static constexpr const char *library = KILN_BINARY_DIR "/tests/libkiln-fake-cuda.so";

  void SetUp() override {
    void *handle = dlopen(library, RTLD_NOW);
    ASSERT_NE(handle, nullptr) << dlerror();
    auto get = reinterpret_cast<FakeCuda *(*)()>(dlsym(handle, "fakeCuda"));
    ASSERT_NE(get, nullptr);
    fake = get();
    *fake = FakeCuda();
  }
  void TearDown() override {
    fake->failures.clear();
    module.reset();
    device.reset();
    EXPECT_TRUE(fake->allocations.empty());
    EXPECT_EQ(fake->liveObjects, 0);
  }

  void open() {
    auto driver = cuda::Driver::open(library);
    ASSERT_TRUE(driver.ok()) << driver.status().toString();
    auto made = cuda::createCudaDevice(*driver, 0);
    ASSERT_TRUE(made.ok()) << made.status().toString();
    device = std::move(*made);
  }
  void load() {
    open();
    auto made = device->loadPtx(ptx, "add.ptx");
    ASSERT_TRUE(made.ok()) << made.status().toString();
    module = std::move(*made);
    auto found = module->kernel("add");
    ASSERT_TRUE(found.ok()) << found.status().toString();
    kernel = *found;
  }

  static constexpr const char *ptx = ".version 8.0\n.target sm_80\n.address_size 64\n"
                                     ".visible .entry add(.param .u64 x, .param .u64 y, .param .u32 n) { ret; }\n";
  FakeCuda *fake = nullptr;
  std::unique_ptr<Device> device;
  std::unique_ptr<Module> module;
  Kernel *kernel = nullptr;
};

} // namespace kiln::test

#endif // KILN_TESTS_RUNTIME_FAKECUDAFIXTURE_H
