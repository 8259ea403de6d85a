//===- DplrFamilies.h - What the families of the DPLR delta rule share ----------===//
//
// Forward and backward, of every rule (Rule.h): parameters, random inputs and tolerance of the specification's tests
// (S5), heads of a reference.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_DPLR_DPLRFAMILIES_H
#define KILN_KERNELS_DPLR_DPLRFAMILIES_H

#include "kernels/dplr/DplrReference.h"
#include "kernels/dplr/Rule.h"
#include "kernels/support/Family.h"

#include <functional>

namespace kiln::kernels {

/// What an operation calls itself, q and g, and what it is.
struct DplrNames {
  std::string_view operation, q, g, summary;
  ChunkRule rule = ChunkRule::Dplr;
  GateKind gate = GateKind::Channel;
  bool isRwkv() const { return q == "r"; }
};

class DplrFamilyBase : public Family {
public:
  explicit DplrFamilyBase(DplrNames names) : names(names) {}
  std::string_view name() const override { return names.operation; }
  std::string_view summary() const override { return names.summary; }
  std::vector<DType> dtypes() const override { return {DType::BF16, DType::F16}; }
  std::vector<NumberParameter> numbers() const override;
  /// Gates and states keep the type of their files.
  std::optional<DType> inputType(const TensorParameter &parameter, std::optional<DType> called,
                                 const Numbers &numbers) const override;
  Status complete(const Arrays &inputs, Numbers &numbers) const override;
  std::vector<double> allowed(std::string_view name, DType dtype, const HostTensors &inputs,
                              const HostTensors &reference, const Numbers &numbers) const override;
  std::optional<double> allowedRatio(std::string_view name) const override;
  Array input(std::string_view name, const TensorType &type, std::uint64_t seed) const override;
  std::string sizeText(const TensorTypes &inputs, const Numbers &numbers) const override;

protected:
  /// The extents of a call, from the types of its tensors.
  struct Extents {
    std::uint64_t batch = 0, tokens = 0, heads = 0, dim = 0, dimV = 0, sequences = 0;
  };
  Result<Extents> extentsOf(const TensorTypes &inputs) const;
  /// What a forward call saves: u8.
  TensorType savedType(const Extents &extents, bool packed, const Numbers &numbers) const;
  /// Those of q, k, v, a, b, g, beta that the rule has, initial_state, cu_seqlens.
  std::vector<TensorParameter> inputParameters() const;
  /// The types of those of q, k, v, a, b, g, beta.
  TensorTypes inputTypes(DType dtype, std::uint64_t batch, std::uint64_t tokens, std::uint64_t heads, std::uint64_t dim,
                         std::uint64_t dimV) const;
  /// Gates that need no look at each chunk: RWKV7's, -exp(-1/2) sigmoid(..), have a bound.
  Numbers safeNumbers() const;
  double scaleOf(const Numbers &numbers, std::uint64_t dim) const;

  /// One head of one sequence of a call, and where its rows lie.
  struct PlacedHead {
    DplrHead head;
    std::uint64_t batch, begin, state; ///< first token; first element of its state in [N, H, K, V]
    std::uint64_t h;
    std::vector<double> key, beta; ///< of the delta rule, as they were given: [T, K], [T]
  };
  /// The outputs that `f` makes of each head; of long calls only of a sample of heads.  `f` puts elements into outputs
  /// by name, of `types`.
  using Put = std::function<void(std::string_view name, std::uint64_t at, double value)>;
  Result<HostTensors> everyHead(const HostTensors &inputs, const Numbers &numbers, const TensorTypes &types,
                                const std::function<void(const PlacedHead &, const Put &)> &f) const;
  /// Rows of a tensor [B, T, H, columns] or [B, T, H] that belong to a head, and the place of its row i.
  static std::vector<double> rowsOf(const HostTensor &tensor, const PlacedHead &at);
  static std::uint64_t rowAt(const Shape &shape, const PlacedHead &at, std::uint64_t i);

  DplrNames names;
};

/// Forward: o, and final_state if it is asked for.
class DplrForwardFamily : public DplrFamilyBase {
public:
  using DplrFamilyBase::DplrFamilyBase;
  std::vector<TensorParameter> tensors() const override;
  Result<TensorTypes> outputs(const TensorTypes &inputs, const Numbers &numbers) const override;
  Result<HostTensors> reference(const HostTensors &inputs, const Numbers &numbers) const override;
};

} // namespace kiln::kernels

#endif // KILN_KERNELS_DPLR_DPLRFAMILIES_H
