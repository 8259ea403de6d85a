// A queue's two sides, over a real server and over those that behave as none should.
#include "runtime/tune/remote/QueueLine.h"
#include "tests/cache/remote/FakeServer.h"

#include <gtest/gtest.h>

#include <csignal>
#include <future>
#include <set>
#include <sys/wait.h>
#include <unistd.h>

namespace kiln::tune {
namespace {

using End = Delivery::End;
using cache::test::FakeServer;
using cache::test::RealServer;

TEST(QueueAddressTest, ANameComesAfterTheServer) {
  const auto textOf = [](const std::string &text) {
    const Result<QueueAddress> a = QueueAddress::parse(text);
    return a ? a->text() : a.status().message();
  };
  EXPECT_EQ(textOf("host"), "redis://host:6379#kiln");
  EXPECT_EQ(textOf("redis://:secret@host:7/2#big_sweep-1.a"), "redis://host:7/2#big_sweep-1.a");
  EXPECT_EQ(textOf("unix:///run/redis.sock#a"), "unix:///run/redis.sock#a");
  for (const char *name : {"#", "# ", "#a:b", "#a/b"})
    EXPECT_NE(textOf(std::string("host") + name).find("the queue's name"), std::string::npos) << name;
  EXPECT_NE(textOf("host#" + std::string(65, 'a')).find("is not 1 to 64"), std::string::npos);
  EXPECT_NE(textOf("http://host#a").find("another scheme"), std::string::npos);
  EXPECT_EQ(textOf("host:x#a").find("secret"), std::string::npos);
}

class RedisQueueTest : public testing::Test {
protected:
  void SetUp() override {
    if (!cache::test::redisLibrary())
      GTEST_SKIP() << "libkiln-redis.so was not built: hiredis or libsodium is missing";
  }
  static QueueOptions optionsFor(const cache::RedisAddress &server) {
    QueueOptions out;
    out.address.server = server;
    out.secret = "a secret of the tests";
    out.library = cache::test::redisLibrary();
    out.silence = 1;
    return out;
  }
  static double secondsOf(const std::function<void()> &what) {
    const auto begin = std::chrono::steady_clock::now();
    what();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
};

/// With redis-server.
class RealQueueTest : public RedisQueueTest {
protected:
  void SetUp() override {
    RedisQueueTest::SetUp();
    if (IsSkipped())
      return;
    server = RealServer::start();
    if (!server)
      GTEST_SKIP() << "redis-server is not installed";
    options = optionsFor(server->address());
  }
  void TearDown() override {
    stop = true;
    for (std::thread &t : threads)
      t.join();
  }
  /// A thread that works until the test ends.
  void work(const std::string &name, Answer answer) {
    QueueOptions its = options;
    its.interrupted = &stop;
    threads.emplace_back([=] {
      const Status s = serveRedisQueue(its, name, 0, answer);
      EXPECT_TRUE(s.ok()) << s.toString();
    });
  }
  /// A process that works until it is killed.
  pid_t workInProcess(const std::string &name, const Answer &answer) const {
    const pid_t child = ::fork();
    if (child == 0) {
      (void)serveRedisQueue(options, name, 0, answer).ok();
      ::_exit(1);
    }
    return child;
  }
  std::unique_ptr<Carrier> open() const {
    Result<std::unique_ptr<Carrier>> out = openRedisQueue(options);
    EXPECT_TRUE(out.ok()) << out.status().toString();
    return out ? std::move(*out) : nullptr;
  }
  static std::string textOf(const Result<Delivery> &d) {
    return d ? d->worker + ":" + d->answer : d.status().toString();
  }

  std::unique_ptr<RealServer> server;
  QueueOptions options;
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
};

TEST_F(RealQueueTest, RequestsAreAnsweredByWhoeverIsFree) {
  const auto carrier = open();
  ASSERT_TRUE(carrier);
  std::vector<std::future<Result<Delivery>>> asked;
  for (unsigned i = 0; i < 8; ++i)
    asked.push_back(std::async(std::launch::async, [&, i] { return carrier->deliver(std::to_string(i), "", {}); }));
  for (const char *name : {"a", "b"}) // they come after the requests
    work(name, [](const std::string &request) {
      ::usleep(20'000);
      return "answer to " + request;
    });
  std::set<std::string> workers;
  for (unsigned i = 0; i < 8; ++i) {
    const Result<Delivery> d = asked[i].get();
    ASSERT_TRUE(d.ok()) << d.status().toString();
    EXPECT_EQ(d->answer, "answer to " + std::to_string(i));
    workers.insert(d->worker);
  }
  EXPECT_EQ(workers.size(), 2u);
  EXPECT_EQ(textOf(carrier->deliver("x", "a", {})), "a:answer to x");
  // Nothing stays on the server.
  QueueLine line(options);
  EXPECT_EQ(**line.ask({"DBSIZE"}), "0");
}

TEST_F(RealQueueTest, AWorkerThatIsKilledIsSeen) {
  const auto carrier = open();
  ASSERT_TRUE(carrier);
  const pid_t doomed = workInProcess("doomed", [](const std::string &) -> std::string {
    ::raise(SIGKILL);
    return "";
  });
  Result<Delivery> d = Delivery();
  EXPECT_LT(secondsOf([&] { d = carrier->deliver("x", "", {}); }), 5);
  ASSERT_TRUE(d.ok()) << d.status().toString();
  EXPECT_EQ(d->end, End::Lost);
  EXPECT_EQ(d->worker, "doomed");
  ASSERT_EQ(::waitpid(doomed, nullptr, 0), doomed);
  // A request for it alone goes to nobody, and comes back.
  d = carrier->deliver("x", "doomed", {});
  ASSERT_TRUE(d.ok()) << d.status().toString();
  EXPECT_EQ(d->end, End::NotBegun);
  work("next", [](const std::string &request) { return request; });
  EXPECT_EQ(textOf(carrier->deliver("x", "", {})), "next:x");
}

/// A lease is renewed however long the answer takes; one that is stopped loses it, and its late answer is nobody's.
TEST_F(RealQueueTest, SlowIsNotLostAndStoppedIs) {
  const auto carrier = open();
  ASSERT_TRUE(carrier);
  const pid_t slow = workInProcess("slow", [](const std::string &request) {
    ::usleep(2'500'000);
    return request;
  });
  EXPECT_EQ(textOf(carrier->deliver("x", "", {})), "slow:x");
  auto second = std::async(std::launch::async, [&] { return carrier->deliver("y", "", {}); });
  ::usleep(300'000); // it has begun
  ::kill(slow, SIGSTOP);
  const Result<Delivery> d = second.get();
  ASSERT_TRUE(d.ok()) << d.status().toString();
  EXPECT_EQ(d->end, End::Lost);
  ::kill(slow, SIGCONT);
  EXPECT_EQ(textOf(carrier->deliver("z", "", {})), "slow:z");
  ::kill(slow, SIGKILL);
  ASSERT_EQ(::waitpid(slow, nullptr, 0), slow);
}

/// As after a restart of the server: the worker's next renewal brings the lease back.
TEST_F(RealQueueTest, ALeaseThatIsGoneForAMomentLosesNobody) {
  const auto carrier = open();
  ASSERT_TRUE(carrier);
  work("w", [](const std::string &request) {
    ::usleep(1'500'000);
    return request;
  });
  auto asked = std::async(std::launch::async, [&] { return carrier->deliver("x", "", {}); });
  ::usleep(600'000); // it has begun
  QueueLine line(options);
  EXPECT_TRUE(line.ask({"FLUSHALL"}).ok());
  EXPECT_EQ(textOf(asked.get()), "w:x");
}

/// Whoever is slow to end leaves the lease to the worker that has taken its request over.
TEST_F(RealQueueTest, AWorkerEndsOnlyItsOwnLease) {
  const auto carrier = open();
  ASSERT_TRUE(carrier);
  QueueLine line(options);
  const auto signer = cache::Signer::create(options.secret, options.library);
  ASSERT_TRUE(signer.ok());
  ASSERT_TRUE(line.ask({"SET", line.key("s.1", "request"), sealed(*signer, "request", "s.1", "", "x")}).ok());
  ASSERT_TRUE(line.put(line.waiting(), "s.1").ok());
  EXPECT_GT(std::stol(**line.ask({"PTTL", line.waiting()})), 0);
  EXPECT_TRUE(serveRedisQueue(options, "w", 0.2, [&](const std::string &request) {
                EXPECT_EQ(**line.ask({"GET", line.key("s.1", "lease")}), "w");
                EXPECT_TRUE(line.ask({"SET", line.key("s.1", "lease"), "another"}).ok());
                return request;
              }).ok());
  EXPECT_EQ(**line.ask({"GET", line.key("s.1", "lease")}), "another");
}

/// What a server writes as a lease reaches a terminal.
TEST_F(RealQueueTest, ALeaseIsShownPrintableAndShort) {
  const auto carrier = open();
  ASSERT_TRUE(carrier);
  auto asked = std::async(std::launch::async, [&] { return carrier->deliver("x", "", {}); });
  QueueLine line(options);
  QueueLine::Text number;
  while (!number)
    number = *line.ask({"LPOP", line.waiting()});
  const std::string text = "\x1b[2Jw\n\xff" + std::string(1000, 'x');
  EXPECT_TRUE(line.ask({"SET", line.key(*number, "lease"), text, "PX", "300"}).ok());
  const Result<Delivery> d = asked.get();
  ASSERT_TRUE(d.ok()) << d.status().toString();
  EXPECT_EQ(d->end, End::Lost);
  EXPECT_EQ(d->worker, "?[2Jw??" + std::string(193, 'x'));
}

/// What a server will never do is not asked again.
TEST_F(RealQueueTest, ACommandThatIsRefusedForGoodEndsASweepAtOnce) {
  options.silence = 30;
  const auto carrier = open();
  ASSERT_TRUE(carrier);
  QueueLine line(options);
  ASSERT_TRUE(line.ask({"SET", line.waiting(), "no list"}).ok());
  EXPECT_LT(secondsOf([&] {
              const Status s = carrier->deliver("x", "", {}).takeStatus();
              EXPECT_EQ(s.code(), StatusCode::Unsupported);
              EXPECT_NE(s.message().find("it answered 'WRONGTYPE"), std::string::npos) << s.toString();
              EXPECT_FALSE(s.remedy().empty());
            }),
            5);
  EXPECT_NE(openRedisQueue(options).status().message().find("WRONGTYPE"), std::string::npos);
}

TEST_F(RealQueueTest, AWorkerThatRefusesLeavesASweepToOthers) {
  const auto carrier = open();
  ASSERT_TRUE(carrier);
  std::atomic<unsigned> asked{0};
  work("other", [&](const std::string &) {
    ++asked;
    return std::string("{\"refused\":\"another compiler\"}");
  });
  EXPECT_EQ(textOf(carrier->deliver("x", "", {})), "other:{\"refused\":\"another compiler\"}");
  work("right", [](const std::string &request) { return request; });
  for (unsigned i = 0; i < 3; ++i)
    EXPECT_EQ(textOf(carrier->deliver("x", "", {})), "right:x");
  EXPECT_EQ(asked, 1u);
  carrier->beginCall(); // it may take part in the next one
  EXPECT_EQ(textOf(carrier->deliver("x", "other", {})), "other:{\"refused\":\"another compiler\"}");
  EXPECT_EQ(asked, 2u);
}

/// What a worker that ends has begun is taken by another one at once.
TEST_F(RealQueueTest, AWorkerThatIsInterruptedPutsItsRequestBack) {
  options.silence = 30;
  const auto carrier = open();
  ASSERT_TRUE(carrier);
  std::atomic<bool> interrupted{false};
  QueueOptions its = options;
  its.interrupted = &interrupted;
  std::thread first([&] {
    EXPECT_TRUE(serveRedisQueue(its, "first", 0, [&](const std::string &) {
                  interrupted = true;
                  return std::string("cut short");
                }).ok());
  });
  auto asked = std::async(std::launch::async, [&] { return carrier->deliver("x", "", {}); });
  first.join();
  work("second", [](const std::string &request) { return request; });
  EXPECT_LT(secondsOf([&] { EXPECT_EQ(textOf(asked.get()), "second:x"); }), 10);
}

TEST_F(RealQueueTest, NobodyWaitsForEver) {
  std::vector<std::string> said;
  options.say = [&](const std::string &line) { said.push_back(line); };
  const auto carrier = open();
  ASSERT_TRUE(carrier);
  Patience patience;
  patience.begin = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  const Result<Delivery> d = carrier->deliver("x", "", patience);
  ASSERT_FALSE(d.ok());
  EXPECT_EQ(d.status().code(), StatusCode::NotReady);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_NE(said[0].find("no worker has taken a configuration yet; start one: kiln tune --work unix://"),
            std::string::npos);
  std::atomic<bool> interrupted{true};
  EXPECT_EQ(carrier->deliver("x", "", {.interrupted = &interrupted}).status().code(), StatusCode::NotReady);
  // A worker without work.
  QueueOptions quiet = options;
  EXPECT_TRUE(serveRedisQueue(quiet, "idle", 0.2, [](const std::string &r) { return r; }).ok());
}

TEST_F(RealQueueTest, AnotherSecretIsNoSecret) {
  const auto carrier = open();
  ASSERT_TRUE(carrier);
  auto asked = std::async(std::launch::async, [&] { return carrier->deliver("x", "", {}); });
  QueueOptions stranger = options;
  stranger.secret = "a secret of somebody else";
  const Status s = serveRedisQueue(stranger, "stranger", 5, [](const std::string &) {
    ADD_FAILURE() << "it answered a request that it cannot trust";
    return std::string();
  });
  EXPECT_EQ(s.code(), StatusCode::InvalidArgument);
  EXPECT_NE(s.message().find("holds a request that is not signed with this secret"), std::string::npos) << s.toString();
  work("friend", [](const std::string &request) { return request; }); // it was put back
  EXPECT_EQ(textOf(asked.get()), "friend:x");
  QueueOptions brief = options;
  brief.secret = "short";
  EXPECT_NE(openRedisQueue(brief).status().message().find("has 5 bytes; it needs 16"), std::string::npos);
}

/// A server, or whoever can write to it, that answers with what was signed for another request.
TEST_F(RealQueueTest, AnAnswerToAnotherRequestIsNone) {
  const auto signer = cache::Signer::create(options.secret, options.library);
  ASSERT_TRUE(signer.ok());
  const std::string value = sealed(*signer, "answer", "sweep.1", "w", "text");
  EXPECT_EQ(unsealed(options, *signer, "answer", "sweep.1", value)->text, "text");
  for (const auto &[kind, number] : {std::pair("answer", "sweep.2"), {"request", "sweep.1"}}) {
    const auto opened = unsealed(options, *signer, kind, number, value);
    ASSERT_FALSE(opened.ok());
    EXPECT_NE(opened.status().message().find("belongs to something else"), std::string::npos);
  }
  std::string changed = value;
  changed[changed.find("text\"", 40)] ^= 1;
  EXPECT_FALSE(unsealed(options, *signer, "answer", "sweep.1", changed).ok());
  EXPECT_FALSE(unsealed(options, *signer, "answer", "sweep.1", "").ok());
}

TEST_F(RealQueueTest, AServerThatGoesAwayEndsBothSides) {
  const auto carrier = open();
  ASSERT_TRUE(carrier);
  auto worker = std::async(std::launch::async, [&] {
    return serveRedisQueue(options, "w", 0, [](const std::string &request) { return request; });
  });
  EXPECT_EQ(textOf(carrier->deliver("x", "", {})), "w:x");
  server.reset();
  for (const Status &s : {carrier->deliver("x", "", {}).takeStatus(), worker.get()}) {
    EXPECT_EQ(s.code(), StatusCode::IoError);
    EXPECT_NE(s.message().find("the queue's server gave no good answer for 1 seconds"), std::string::npos)
        << s.toString();
  }
}

TEST_F(RedisQueueTest, ServersThatAreNone) {
  cache::RedisAddress nobody;
  nobody.socket = "/nonexistent/redis.sock";
  const FakeServer silent(cache::test::answering("")), error(cache::test::answering("-NOAUTH who are you\r\n")),
      other(cache::test::answering("+HELLO\r\n")), noise(cache::test::answering("HTTP/1.1 400 Bad Request\r\n\r\n"));
  for (const auto &[address, part] : {std::pair(nobody, "No such file or directory"),
                                      {silent.address(), "no answer in time"},
                                      {error.address(), "NOAUTH who are you"},
                                      {other.address(), "its answer is none that Redis gives"},
                                      {noise.address(), "its answer is none that Redis gives"}}) {
    Status s;
    EXPECT_LT(secondsOf([&, &a = address] { s = openRedisQueue(optionsFor(a)).takeStatus(); }), 5);
    EXPECT_NE(s.message().find(part), std::string::npos) << s.toString();
    EXPECT_NE(s.message().find("the queue's server cannot be used"), std::string::npos) << s.toString();
    EXPECT_FALSE(s.remedy().empty());
    EXPECT_NE(serveRedisQueue(optionsFor(address), "w", 1, [](const std::string &r) { return r; }).message().find(part),
              std::string::npos);
  }
}

TEST_F(RedisQueueTest, AServerOfBeforeLposIsTold) {
  const FakeServer old([](int socket) {
    char piece[4096];
    for (ssize_t n; (n = ::read(socket, piece, sizeof piece)) > 0;)
      cache::test::sendAll(socket,
                           std::string_view(piece, static_cast<std::size_t>(n)).find("PING") != std::string::npos
                               ? "+PONG\r\n"
                               : "-ERR unknown command `LPOS`, with args beginning with: \r\n");
  });
  const Status s = openRedisQueue(optionsFor(old.address())).takeStatus();
  EXPECT_EQ(s.code(), StatusCode::Unsupported);
  EXPECT_NE(s.message().find("unknown command `LPOS`"), std::string::npos) << s.toString();
  EXPECT_NE(s.remedy().find("Redis 6.0.6 or later"), std::string::npos) << s.remedy();
}

/// It says of everything that it is there: what it made up is not signed.
TEST_F(RedisQueueTest, AServerThatLies) {
  const FakeServer liar([](int socket) {
    char piece[4096];
    for (ssize_t n; (n = ::read(socket, piece, sizeof piece)) > 0;) {
      const std::string_view asked(piece, static_cast<std::size_t>(n));
      cache::test::sendAll(socket,
                           asked.find("PING") != asked.npos ? "+PONG\r\n" : "$40\r\n" + std::string(40, 'x') + "\r\n");
    }
  });
  auto carrier = openRedisQueue(optionsFor(liar.address()));
  ASSERT_TRUE(carrier.ok()) << carrier.status().toString();
  const Status asked = (*carrier)->deliver("x", "", {}).takeStatus();
  EXPECT_NE(asked.message().find("holds an answer that is not signed with this secret"), std::string::npos)
      << asked.toString();
  const Status served = serveRedisQueue(optionsFor(liar.address()), "w", 1, [](const std::string &) {
    ADD_FAILURE() << "it answered a request that it cannot trust";
    return std::string();
  });
  EXPECT_NE(served.message().find("holds a request that is not signed with this secret"), std::string::npos)
      << served.toString();
}

} // namespace
} // namespace kiln::tune
