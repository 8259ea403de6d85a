// Servers that are hung, slow, wrong or gone: each costs one wait, and never more.
#include "tests/cache/remote/FakeServer.h"

#include <gtest/gtest.h>

#include <fstream>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace kiln::cache::test {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

/// Of a busy machine: what is looked for is a wait of seconds.
constexpr auto soon = 1500ms;

class RedisLayerTest : public testing::Test {
protected:
  void SetUp() override {
    if (!redisLibrary())
      GTEST_SKIP() << "libkiln-redis.so was not built: hiredis or libsodium is missing";
  }
  const KeyText key = sampleKey(1);
  std::vector<std::string> said;
  std::mutex mutex;

  RedisOptions listening(const RedisAddress &address) {
    RedisOptions o = optionsFor(address);
    o.say = [this](const std::string &line) {
      const std::lock_guard lock(mutex);
      said.push_back(line);
    };
    return o;
  }
  std::size_t linesSaid() {
    const std::lock_guard lock(mutex);
    return said.size();
  }

  /// The first lookup ends soon with no entry; those after it do not ask.
  void expectOneWait(const RedisAddress &address, const std::string &what) {
    SCOPED_TRACE(what);
    said.clear();
    const auto layer = layerFor(listening(address));
    const auto start = Clock::now();
    const auto first = layer->lookup(key);
    const auto wait = Clock::now() - start;
    EXPECT_LT(wait, soon);
    EXPECT_TRUE(!first || !*first);
    for (int i = 0; i < 100; ++i) {
      const auto more = layer->lookup(sampleKey(i));
      ASSERT_TRUE(more.ok());
      EXPECT_FALSE(*more);
    }
    EXPECT_LT(Clock::now() - start, wait + soon);
    const RedisCounters c = layer->counters();
    EXPECT_EQ(c.hits, 0u);
    EXPECT_EQ(c.misses, 1u);
    EXPECT_EQ(c.skipped, 100u);
    EXPECT_GE(c.failures, 1u);
    layer->offer(key, sampleEntry(1));
    EXPECT_EQ(layer->counters().dropped, 1u);
    EXPECT_EQ(linesSaid(), 1u) << "said once";
  }
};

TEST_F(RedisLayerTest, AHungServer) {
  const FakeServer silent(answering(""));
  expectOneWait(silent.address(), "takes the question and is silent");
}

TEST_F(RedisLayerTest, AServerThatDrips) {
  const FakeServer slow([](int socket) {
    sendAll(socket, "$1000\r\n");
    for (char c = 'a';; ++c) {
      pollfd one{socket, POLLIN | POLLRDHUP, 0};
      if (::poll(&one, 1, 20) > 0 && (one.revents & (POLLRDHUP | POLLHUP)))
        return;
      sendAll(socket, std::string_view(&c, 1));
    }
  });
  expectOneWait(slow.address(), "sends a byte now and then");
}

TEST_F(RedisLayerTest, WrongAnswers) {
  for (const char *answer : {"HTTP/1.1 400 Bad Request\r\n\r\n", "*1000000000\r\n", "*2\r\n$1\r\na\r\n$1\r\nb\r\n",
                             "-ERR who are you\r\n", "$999999999999999999999\r\n", "$-2\r\n", ":x\r\n", "\r\n", "?"}) {
    const FakeServer wrong(answering(answer));
    expectOneWait(wrong.address(), answer);
  }
  // Good Redis, but no entry of ours.
  for (const char *answer : {"$3\r\nabc\r\n", ":5\r\n", "+OK\r\n", "$0\r\n\r\n"}) {
    const FakeServer foreign(answering(answer));
    expectOneWait(foreign.address(), answer);
  }
}

TEST_F(RedisLayerTest, AnEndlessAnswer) {
  const FakeServer endless([](int socket) {
    sendAll(socket, "$268435456\r\n");
    const std::string many(1 << 16, 'x');
    for (;;) {
      if (::send(socket, many.data(), many.size(), MSG_NOSIGNAL) <= 0)
        return;
    }
  });
  expectOneWait(endless.address(), "as much as an entry may be, and more");
}

TEST_F(RedisLayerTest, AServerThatIsGone) {
  RedisAddress nobody;
  {
    const FakeServer gone(answering(""));
    nobody = gone.address();
  }
  expectOneWait(nobody, "no one listens");
  const FakeServer closes([](int socket) { ::shutdown(socket, SHUT_RDWR); });
  expectOneWait(closes.address(), "closes every connection");
  RedisAddress socket;
  socket.socket = "/nonexistent/redis.sock";
  expectOneWait(socket, "no such socket");
  socket.socket = "/" + std::string(200, 'x');
  expectOneWait(socket, "a path that is too long");
  RedisAddress name;
  name.host = "no-such-host.invalid";
  expectOneWait(name, "no such host");
}

TEST_F(RedisLayerTest, ManyThreadsWaitTogether) {
  const FakeServer silent(answering(""));
  const auto layer = layerFor(listening(silent.address()));
  const auto start = Clock::now();
  std::vector<std::thread> threads;
  for (int i = 0; i < 16; ++i)
    threads.emplace_back([&, i] {
      const auto got = layer->lookup(sampleKey(i)); // a failure, or nothing
      EXPECT_TRUE(!got || !*got);
    });
  for (std::thread &t : threads)
    t.join();
  EXPECT_LT(Clock::now() - start, soon) << "16 waits one after the other would be 3.2 s";
  EXPECT_EQ(linesSaid(), 1u);
}

TEST_F(RedisLayerTest, TheEndOfAProgramDoesNotWaitForAHungServer) {
  const FakeServer silent(answering(""));
  const auto start = Clock::now();
  {
    const auto layer = layerFor(optionsFor(silent.address()));
    for (int i = 0; i < 10; ++i)
      layer->offer(sampleKey(i), sampleEntry(i));
  }
  EXPECT_LT(Clock::now() - start, soon);
}

TEST_F(RedisLayerTest, AServerThatIsBackIsAskedAgain) {
  std::atomic<bool> isBack{false};
  const FakeServer server([&](int socket) {
    char piece[4096];
    for (ssize_t n; (n = ::recv(socket, piece, sizeof piece, 0)) > 0;)
      if (!isBack)
        return (void)::shutdown(socket, SHUT_RDWR);
      else
        sendAll(socket, std::string_view(piece, static_cast<std::size_t>(n)).find("PING") != std::string_view::npos
                            ? "+PONG\r\n"
                            : "$-1\r\n");
  });
  RedisOptions options = listening(server.address());
  options.retryAfter = 10ms;
  const auto layer = layerFor(std::move(options));
  EXPECT_FALSE(layer->lookup(key).ok());
  for (int i = 0; i < 5; ++i) {
    std::this_thread::sleep_for(20ms);
    EXPECT_FALSE(*layer->lookup(key));
  }
  EXPECT_EQ(layer->counters().misses, 1u) << "nobody has waited again";
  isBack = true;
  for (int i = 0; i < 500 && layer->counters().misses == 1; ++i) {
    std::this_thread::sleep_for(20ms);
    ASSERT_TRUE(layer->lookup(key).ok());
  }
  EXPECT_GT(layer->counters().misses, 1u) << "asked again";
  EXPECT_EQ(linesSaid(), 2u) << "gone, and back";
}

TEST_F(RedisLayerTest, WhatIsTooMuchToSendIsDropped) {
  const FakeServer silent(answering(""));
  RedisOptions options = optionsFor(silent.address());
  options.mostQueued = 100'000;
  const auto layer = layerFor(std::move(options));
  for (int i = 0; i < 10; ++i)
    layer->offer(sampleKey(i), sampleEntry(i, 40'000));
  EXPECT_GE(layer->counters().dropped, 7u); // one may be on its way
}

TEST(RedisSecret, IsLongAndPrivate) {
  const kiln::test::TemporaryDirectory folder;
  const std::string path = folder.path() + "/secret";
  writeBytes(path, "0123456789abcdef\n");
  ASSERT_EQ(::chmod(path.c_str(), 0640), 0);
  const auto readable = readSecret(path);
  ASSERT_FALSE(readable.ok());
  EXPECT_NE(readable.status().message().find("can be read by others"), std::string::npos);
  ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
  const auto good = readSecret(path);
  ASSERT_TRUE(good.ok()) << good.status().toString();
  EXPECT_EQ(*good, "0123456789abcdef") << "without its newline";
  EXPECT_EQ(readSecret("").status().code(), StatusCode::InvalidArgument);
  EXPECT_EQ(readSecret(path + "x").status().code(), StatusCode::NotFound);
  RedisOptions options;
  options.secret = "too short";
  const auto layer = redisLayer(std::move(options));
  ASSERT_FALSE(layer.ok());
  EXPECT_NE(layer.status().message().find("needs 16"), std::string::npos);
}

} // namespace
} // namespace kiln::cache::test
