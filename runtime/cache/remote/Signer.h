//===- Signer.h - What those who share a secret tell each other through a server ----===//
//
// A server may make things up.  What it holds begins with a signature by a secret that it does not know.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_CACHE_REMOTE_SIGNER_H
#define KILN_RUNTIME_CACHE_REMOTE_SIGNER_H

#include "runtime/cache/remote/RedisLibrary.h"
#include "support/Status.h"

#include <optional>
#include <string>
#include <string_view>

namespace kiln::cache {

class Signer {
public:
  /// Fails for a secret that is too short, and without a library (of openRedisLibrary).
  static Result<Signer> create(std::string secret, const KilnRedisTable *library);

  /// The signature and the text.
  std::string sign(std::string_view text) const;
  /// The text of what is signed; nothing, if it is not with this secret.
  std::optional<std::string_view> opened(std::string_view value) const;

private:
  Signer(std::string secret, const KilnRedisTable *library) : secret(std::move(secret)), library(library) {}
  std::string signatureOf(std::string_view text) const;
  std::string secret;
  const KilnRedisTable *library;
};

} // namespace kiln::cache

#endif // KILN_RUNTIME_CACHE_REMOTE_SIGNER_H
