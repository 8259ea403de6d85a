#include "runtime/cache/remote/RedisAddress.h"

#include <algorithm>

namespace kiln::cache {

static bool isNumber(std::string_view text, unsigned long most) {
  if (text.empty() || text.size() > 5 ||
      !std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; }))
    return false;
  return std::stoul(std::string(text)) <= most;
}

std::string RedisAddress::text() const {
  if (!socket.empty())
    return "unix://" + socket;
  const bool isBare = host.find(':') == std::string::npos;
  return "redis://" + (isBare ? host : "[" + host + "]") + ":" + port + (database.empty() ? "" : "/" + database);
}

Result<RedisAddress> RedisAddress::parse(std::string_view given) {
  // A password may be in it: the text is not repeated.
  const auto wrong = [](const std::string &why) {
    return Status::invalid("the address of the cache's server " + why,
                           "write host:port, redis://[user:password@]host[:port][/database] or unix:///path");
  };
  RedisAddress out;
  constexpr std::string_view unixScheme = "unix://", scheme = "redis://";
  if (given.starts_with(unixScheme)) {
    out.socket = given.substr(unixScheme.size());
    if (!out.socket.starts_with('/'))
      return wrong("names a Unix socket by a path that does not begin with /");
    return out;
  }
  if (given.starts_with(scheme))
    given.remove_prefix(scheme.size());
  else if (given.find("://") != std::string_view::npos)
    return wrong("begins with another scheme than redis:// and unix:// (TLS is not supported)");
  if (const auto at = given.rfind('@'); at != std::string_view::npos) {
    const std::string_view who = given.substr(0, at);
    const auto colon = who.find(':');
    out.user = colon == std::string_view::npos ? "" : who.substr(0, colon);
    out.password = colon == std::string_view::npos ? who : who.substr(colon + 1);
    if (out.password.empty())
      return wrong("has a user and no password");
    given.remove_prefix(at + 1);
  }
  if (const auto slash = given.find('/'); slash != std::string_view::npos) {
    out.database = given.substr(slash + 1);
    if (!out.database.empty() && !isNumber(out.database, 65535))
      return wrong("has '" + out.database + "' for a database, which is a number");
    given = given.substr(0, slash);
  }
  std::string_view port;
  if (given.starts_with('[')) {
    const auto end = given.find(']');
    if (end == std::string_view::npos)
      return wrong("has [ without ]");
    out.host = given.substr(1, end - 1);
    port = given.substr(end + 1);
    if (!port.empty() && port[0] != ':')
      return wrong("has '" + std::string(port) + "' after ]");
    port = port.empty() ? port : port.substr(1);
  } else {
    const auto colon = given.find(':');
    out.host = given.substr(0, colon);
    port = colon == std::string_view::npos ? std::string_view() : given.substr(colon + 1);
    if (colon != std::string_view::npos && port.empty())
      return wrong("ends with a colon");
  }
  if (out.host.empty())
    return wrong("has no host");
  if (!port.empty()) {
    if (!isNumber(port, 65535) || port == "0")
      return wrong("has '" + std::string(port) + "' for a port, which is a number from 1 to 65535");
    out.port = port;
  }
  return out;
}

} // namespace kiln::cache
