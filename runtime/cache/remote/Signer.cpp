#include "runtime/cache/remote/Signer.h"

namespace kiln::cache {

Result<Signer> Signer::create(std::string secret, const KilnRedisTable *library) {
  constexpr std::size_t leastSecret = 16;
  if (secret.size() < leastSecret)
    return Status::invalid("the secret of the server has " + std::to_string(secret.size()) + " bytes; it needs " +
                               std::to_string(leastSecret),
                           "make one: head -c 32 /dev/urandom | base64 > FILE && chmod 600 FILE");
  if (!library)
    return Status::invalid("nothing signs without the library of Redis", "open it with openRedisLibrary()");
  return Signer(std::move(secret), library);
}

std::string Signer::signatureOf(std::string_view text) const {
  std::string out(signatureBytes, '\0');
  library->sign(reinterpret_cast<unsigned char *>(out.data()), secret.data(), secret.size(), text.data(), text.size());
  return out;
}

std::string Signer::sign(std::string_view text) const {
  return signatureOf(text).append(text);
}

std::optional<std::string_view> Signer::opened(std::string_view value) const {
  if (value.size() < signatureBytes)
    return {};
  const std::string_view text = value.substr(signatureBytes);
  const std::string signature = signatureOf(text);
  if (!library->same(reinterpret_cast<const unsigned char *>(signature.data()),
                     reinterpret_cast<const unsigned char *>(value.data())))
    return {};
  return text;
}

} // namespace kiln::cache
