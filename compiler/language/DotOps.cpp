// Matrix products.
#include "RecorderImpl.h"

namespace kiln::language::detail {

using ValueText = Recorder::ValueText;
using TypeText = Recorder::TypeText;

Handle dot(const Operand &a, const Operand &b, const Operand &c, std::string_view precision, Location loc) {
  Recorder *r = Recorder::open("dot", loc);
  if (!r)
    return {};
  const auto lhs = r->find(a, "dot", loc);
  const auto rhs = lhs ? r->find(b, "dot", loc) : std::nullopt;
  const auto sum = rhs ? r->find(c, "dot", loc) : std::nullopt;
  if (!sum)
    return {};
  const Shape x = r->typeOf(*lhs).shape, y = r->typeOf(*rhs).shape, z = r->typeOf(*sum).shape;
  const unsigned rank = z.rank();
  bool good = (rank == 2 || rank == 3) && x.rank() == rank && y.rank() == rank;
  good = good && x[rank - 1] == y[rank - 2] && x[rank - 2] == z[rank - 2] && y[rank - 1] == z[rank - 1];
  if (!good || (rank == 3 && (x[0] != z[0] || y[0] != z[0]))) {
    r->fail(loc, "dot", "of " + x.toString() + " by " + y.toString() + " added to " + z.toString(),
            "multiply [M, K] by [K, N] and add to [M, N]; all three may have a leading batch dimension");
    return {};
  }
  const std::string how = precision.empty() ? "" : " precision " + std::string(precision);
  const TypeId type = r->value(*sum).type;
  return r->handle(r->result(type, loc, Op::Dot, ' ', ValueText{*lhs}, ", ", ValueText{*rhs}, ", ", ValueText{*sum},
                             how, " : ", TypeText{r->value(*lhs).type}, ", ", TypeText{r->value(*rhs).type}, " to ",
                             TypeText{type}));
}

} // namespace kiln::language::detail
