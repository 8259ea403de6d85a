#include "runtime/cache/remote/RedisAddress.h"

#include <gtest/gtest.h>

namespace kiln::cache {
namespace {

TEST(RedisAddress, WhatIsWritten) {
  const struct {
    const char *given, *text, *user, *password;
  } cases[] = {
      {"cache", "redis://cache:6379", "", ""},
      {"cache:7000", "redis://cache:7000", "", ""},
      {"[::1]:7000", "redis://[::1]:7000", "", ""},
      {"redis://10.0.0.1", "redis://10.0.0.1:6379", "", ""},
      {"redis://10.0.0.1/3", "redis://10.0.0.1:6379/3", "", ""},
      {"redis://me:p@ss@cache:1/", "redis://cache:1", "me", "p@ss"},
      {"redis://pass@cache", "redis://cache:6379", "", "pass"},
      {"unix:///run/redis.sock", "unix:///run/redis.sock", "", ""},
  };
  for (const auto &c : cases) {
    const auto got = RedisAddress::parse(c.given);
    ASSERT_TRUE(got.ok()) << c.given << ": " << got.status().toString();
    EXPECT_EQ(got->text(), c.text) << "no password is in it";
    EXPECT_EQ(got->user, c.user) << c.given;
    EXPECT_EQ(got->password, c.password) << c.given;
  }
}

TEST(RedisAddress, WhatIsWrong) {
  for (const char *given :
       {"", ":6379", "cache:", "cache:x", "cache:0", "cache:65536", "cache:123456", "cache/x", "rediss://cache",
        "http://cache", "redis://me:@cache", "[::1", "[::1]7000", "unix://run", "redis://@cache"}) {
    const auto got = RedisAddress::parse(given);
    EXPECT_FALSE(got.ok()) << given;
    EXPECT_FALSE(got.status().remedy().empty()) << given;
  }
  const auto secret = RedisAddress::parse("redis://me:hunter2@cache:x");
  ASSERT_FALSE(secret.ok());
  EXPECT_EQ(secret.status().toString().find("hunter2"), std::string::npos);
}

} // namespace
} // namespace kiln::cache
