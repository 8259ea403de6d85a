// What the emulator makes of streams of others and of copies that need not wait.
#include "kiln/Device.h"

#include <gtest/gtest.h>

using namespace kiln;

namespace {

TEST(EmulatorStreams, TakeNoNativeStreamButTheDefaultOne) {
  const auto device = openDevice("emulator:sm_80");
  ASSERT_TRUE(device.ok());
  EXPECT_EQ((*device)->native(), nullptr);
  const auto stream = (*device)->streamOf(nullptr);
  ASSERT_TRUE(stream.ok());
  EXPECT_TRUE((*stream)->synchronize().ok());
  const Status s = (*device)->streamOf(reinterpret_cast<void *>(0x1230)).status();
  EXPECT_EQ(s.code(), StatusCode::InvalidArgument);
  EXPECT_EQ(s.message(), "emulator:sm_80: 0x1230 cannot be one of its streams: it has no native ones");
  EXPECT_FALSE(s.remedy().empty());
}

TEST(EmulatorStreams, AsyncCopiesHaveCopiedWhenTheyReturn) {
  const auto device = openDevice("emulator:sm_80");
  ASSERT_TRUE(device.ok());
  const auto buffer = (*device)->allocate(8);
  const auto memory = (*device)->allocateHost(8);
  ASSERT_TRUE(buffer.ok() && memory.ok());
  Stream &stream = (*device)->defaultStream();
  const std::span<std::byte> bytes = (*memory)->bytes();
  bytes[3] = std::byte{42};
  ASSERT_TRUE((*buffer)->copyFromHostAsync(0, bytes, stream).ok());
  bytes[3] = std::byte{0};
  ASSERT_TRUE((*buffer)->copyToHostAsync(0, bytes, stream).ok());
  EXPECT_EQ(bytes[3], std::byte{42});
  EXPECT_FALSE((*buffer)->copyFromHostAsync(1, bytes, stream).ok());
  EXPECT_TRUE((*(*device)->allocateHost(0))->bytes().empty());
  EXPECT_EQ((*device)->allocateHost(~std::size_t{0}).status().code(), StatusCode::OutOfMemory);
}

} // namespace
