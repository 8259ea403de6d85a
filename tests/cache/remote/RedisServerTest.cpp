// A real server: what one machine stores another finds, and nothing else.
#include "runtime/cache/Hash.h"
#include "runtime/cache/remote/RedisConnection.h"
#include "tests/cache/remote/FakeServer.h"

#include <gtest/gtest.h>

namespace kiln::cache::test {
namespace {

using namespace std::chrono_literals;

class RedisServerTest : public testing::Test {
protected:
  void SetUp() override {
    if (!redisLibrary())
      GTEST_SKIP() << "libkiln-redis.so was not built: hiredis or libsodium is missing";
    server = RealServer::start();
    if (!server)
      GTEST_SKIP() << "redis-server is not installed";
  }

  RedisOptions patient() const {
    RedisOptions out = optionsFor(server->address());
    out.patience = 10s; // a busy machine
    return out;
  }
  static void offerAndWait(RedisLayer &layer, const KeyText &key, const Entry &entry) {
    const std::uint64_t before = layer.counters().stored;
    layer.offer(key, entry);
    for (int i = 0; i < 1000 && layer.counters().stored == before; ++i)
      std::this_thread::sleep_for(10ms);
    ASSERT_EQ(layer.counters().stored, before + 1);
  }
  static std::string nameOf(const KeyText &key) { return "kiln:1:" + hexText(hash128(key.serialise())); }
  std::optional<std::string> ask(std::initializer_list<std::string_view> words) {
    RedisConnection connection(server->address(), *redisLibrary());
    auto answer = connection.command(words, RedisConnection::Clock::now() + 10s, 1 << 20);
    EXPECT_TRUE(answer.ok()) << answer.status().toString();
    return answer ? *answer : std::nullopt;
  }

  std::unique_ptr<RealServer> server;
};

TEST_F(RedisServerTest, WhatOneStoresAnotherFinds) {
  const auto writer = layerFor(patient()), reader = layerFor(patient());
  EXPECT_EQ(writer->name(), server->address().text());
  EXPECT_FALSE(*reader->lookup(sampleKey(1)));
  const Entry large = sampleEntry(1, 3'000'000);
  offerAndWait(*writer, sampleKey(1), large);
  offerAndWait(*writer, sampleKey(2), sampleEntry(2));
  for (int i = 0; i < 3; ++i) {
    const auto found = reader->lookup(sampleKey(1));
    ASSERT_TRUE(found.ok()) << found.status().toString();
    ASSERT_TRUE(*found);
    EXPECT_EQ(**found, large);
  }
  EXPECT_EQ(**reader->lookup(sampleKey(2)), sampleEntry(2));
  EXPECT_FALSE(*reader->lookup(sampleKey(3)));
  const RedisCounters c = reader->counters();
  EXPECT_EQ(c.hits, 4u);
  EXPECT_EQ(c.misses, 2u);
  EXPECT_EQ(c.failures, 0u);
}

TEST_F(RedisServerTest, TheEndOfAProgramSendsWhatIsLeft) {
  {
    const auto writer = layerFor(patient());
    for (int i = 0; i < 20; ++i)
      writer->offer(sampleKey(i), sampleEntry(i, 50'000));
  }
  const auto reader = layerFor(patient());
  for (int i = 0; i < 20; ++i)
    EXPECT_TRUE(*reader->lookup(sampleKey(i))) << i;
}

/// What whoever can write to the server might put there.
TEST_F(RedisServerTest, HostileEntriesAreRefused) {
  const KeyText key = sampleKey(1), other = sampleKey(2);
  const auto writer = layerFor(patient());
  offerAndWait(*writer, key, sampleEntry(1));
  offerAndWait(*writer, other, sampleEntry(2));
  const std::string good = ask({"GET", nameOf(key)}).value_or(""), ofOther = ask({"GET", nameOf(other)}).value_or("");
  ASSERT_FALSE(good.empty() || ofOther.empty());
  RedisOptions strangers = patient();
  strangers.secret = "another secret, also long";
  {
    const auto stranger = layerFor(std::move(strangers));
    EXPECT_EQ(stranger->lookup(key).status().code(), StatusCode::InvalidArgument) << "another secret";
    EXPECT_EQ(stranger->counters().refused, 1u);
  }
  const auto expectRefused = [&](const std::string &value, const std::string &what) {
    ask({"SET", nameOf(key), value});
    const auto reader = layerFor(patient());
    const auto got = reader->lookup(key);
    EXPECT_FALSE(got.ok()) << what;
    EXPECT_EQ(reader->counters().refused, 1u) << what;
    EXPECT_EQ(reader->counters().hits, 0u) << what;
  };
  expectRefused(ofOther, "a good entry of another key");
  expectRefused(encodeEntry(key.serialise(), sampleEntry(3)), "no signature");
  expectRefused(good.substr(0, signatureBytes) + encodeEntry(key.serialise(), sampleEntry(3)), "another one's");
  expectRefused(good.substr(0, 10), "cut short");
  expectRefused("", "nothing");
  for (std::size_t i = 0; i < good.size(); i += 31) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 1);
    expectRefused(bad, "byte " + std::to_string(i));
  }
  ask({"SET", nameOf(key), good});
  EXPECT_EQ(**layerFor(patient())->lookup(key), sampleEntry(1));
  // Not a string at all.
  ask({"DEL", nameOf(key)});
  ask({"LPUSH", nameOf(key), "x"});
  EXPECT_FALSE(layerFor(patient())->lookup(key).ok());
}

TEST_F(RedisServerTest, PasswordsAndDatabases) {
  server = RealServer::start({"--requirepass", "open sesame"});
  ASSERT_TRUE(server);
  EXPECT_FALSE(layerFor(patient())->lookup(sampleKey(1)).ok()) << "without the password";
  RedisOptions wrong = patient();
  wrong.address.password = "sesame";
  EXPECT_FALSE(layerFor(std::move(wrong))->lookup(sampleKey(1)).ok());
  const auto with = [&](const char *user, const char *database) {
    RedisOptions out = patient();
    out.address.user = user;
    out.address.password = "open sesame";
    out.address.database = database;
    return layerFor(std::move(out));
  };
  offerAndWait(*with("", "2"), sampleKey(1), sampleEntry(1));
  EXPECT_TRUE(*with("default", "2")->lookup(sampleKey(1)));
  EXPECT_FALSE(*with("", "")->lookup(sampleKey(1))) << "another database";
}

/// The connection was closed while nobody spoke: that is no failure.
TEST_F(RedisServerTest, AnIdleConnectionIsOpenedAgain) {
  const auto layer = layerFor(patient());
  EXPECT_FALSE(*layer->lookup(sampleKey(1)));
  ask({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
  const auto after = layer->lookup(sampleKey(1));
  ASSERT_TRUE(after.ok()) << after.status().toString();
  EXPECT_EQ(layer->counters().failures, 0u);
}

} // namespace
} // namespace kiln::cache::test
