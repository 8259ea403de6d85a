//===- Layer.h - Other places where compiled kernels may be ---------------===//
//
// Asked after this user's own cache and before anybody compiles: a folder that an administrator fills, a server that
// machines share.  As with the cache, nothing here ever has to succeed: a failed Status is a miss.  What a lookup gives
// was stored under exactly this key by somebody who is trusted to; how that is known is each layer's own matter.
// Safe to use from several threads.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_CACHE_LAYER_H
#define KILN_RUNTIME_CACHE_LAYER_H

#include "runtime/cache/Entry.h"
#include "runtime/cache/KeyText.h"

#include <optional>
#include <string>

namespace kiln::cache {

class Layer {
public:
  virtual ~Layer() = default;
  /// "'/opt/kernels'", "redis://cache.example:6379".
  virtual const std::string &name() const = 0;
  virtual Result<std::optional<Entry>> lookup(const KeyText &key) = 0;
  /// Takes what was compiled here, or does nothing.  Does not wait for it to arrive.
  virtual void offer(const KeyText &key, const Entry &entry) = 0;
  /// What is found here is copied to this user's cache: to ask again takes longer than to read a file.
  virtual bool isRemote() const = 0;
};

} // namespace kiln::cache

#endif // KILN_RUNTIME_CACHE_LAYER_H
