// libkiln-redis.so.
#include "runtime/cache/remote/RedisLibrary.h"

#include <cstdlib>
#include <cstring>
#include <hiredis/hiredis.h>
#include <new>
#include <sodium.h>
#include <string>

namespace {

/// Replies are kept here: those that hiredis makes itself take memory for as many elements as a server claims to send.
struct Reader {
  redisReader *reader = nullptr;
  KilnRedisReply::Kind kind = KilnRedisReply::Incomplete;
  std::string text;

  static Reader &of(const redisReadTask *task) { return *static_cast<Reader *>(task->privdata); }
  void *take(KilnRedisReply::Kind what, const char *from, std::size_t bytes) {
    kind = what;
    text.assign(from ? from : "", from ? bytes : 0);
    return this;
  }
};

redisReplyObjectFunctions functions = {
    .createString =
        [](const redisReadTask *task, char *from, std::size_t bytes) {
          return Reader::of(task).take(task->type == REDIS_REPLY_ERROR ? KilnRedisReply::Error : KilnRedisReply::Text,
                                       from, bytes);
        },
    .createArray = [](const redisReadTask *, int) -> void * { return nullptr; },
    .createInteger =
        [](const redisReadTask *task, long long number) {
          const std::string text = std::to_string(number);
          return Reader::of(task).take(KilnRedisReply::Number, text.data(), text.size());
        },
    .createNil = [](const redisReadTask *task) { return Reader::of(task).take(KilnRedisReply::Nothing, nullptr, 0); },
    .freeObject = [](void *) {},
};

char *format(int count, const char *const *words, const std::size_t *bytes, std::size_t *length) {
  char *out = nullptr;
  const int n = redisFormatCommandArgv(&out, count, const_cast<const char **>(words), bytes);
  *length = n < 0 ? 0 : static_cast<std::size_t>(n);
  return n < 0 ? nullptr : out;
}

void *makeReader() {
  auto *out = new (std::nothrow) Reader;
  if (!out)
    return nullptr;
  out->reader = redisReaderCreate();
  if (!out->reader) {
    delete out;
    return nullptr;
  }
  out->reader->fn = &functions;
  out->reader->privdata = out;
  return out;
}

KilnRedisReply feed(void *opaque, const char *piece, std::size_t bytes) {
  auto &self = *static_cast<Reader *>(opaque);
  self.kind = KilnRedisReply::Incomplete;
  void *reply = nullptr;
  if (redisReaderFeed(self.reader, piece, bytes) != REDIS_OK || redisReaderGetReply(self.reader, &reply) != REDIS_OK)
    return {KilnRedisReply::Unexpected, nullptr, 0};
  return {reply ? self.kind : KilnRedisReply::Incomplete, self.text.data(), self.text.size()};
}

void freeReader(void *opaque) {
  auto *self = static_cast<Reader *>(opaque);
  redisReaderFree(self->reader);
  delete self;
}

void sign(unsigned char *out, const char *secret, std::size_t secretBytes, const char *data, std::size_t bytes) {
  unsigned char key[crypto_generichash_KEYBYTES];
  crypto_generichash(key, sizeof key, reinterpret_cast<const unsigned char *>(secret), secretBytes, nullptr, 0);
  crypto_generichash(out, kiln::cache::signatureBytes, reinterpret_cast<const unsigned char *>(data), bytes, key,
                     sizeof key);
}

} // namespace

extern "C" __attribute__((visibility("default"))) const KilnRedisTable *kilnRedisTable() {
  static const KilnRedisTable table = {kiln::cache::redisTableVersion,
                                       format,
                                       [](char *text) { redisFreeCommand(text); },
                                       makeReader,
                                       feed,
                                       freeReader,
                                       sign,
                                       [](const unsigned char *a, const unsigned char *b) {
                                         return sodium_memcmp(a, b, kiln::cache::signatureBytes) == 0;
                                       }};
  return sodium_init() < 0 ? nullptr : &table;
}
