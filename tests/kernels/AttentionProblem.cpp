#include "tests/kernels/AttentionProblem.h"

#include "kernels/attention/Dropout.h"
#include "tests/kernels/Operand.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace kiln::test {

using kernels::Alignment;

namespace {

std::int64_t sum(const std::vector<std::int64_t> &lengths) {
  return std::accumulate(lengths.begin(), lengths.end(), std::int64_t(0));
}

} // namespace

std::int64_t Problem::rowsQ() const {
  return packed() ? sum(lengthsQ) : batch * queries;
}
std::int64_t Problem::rowsK() const {
  return packed() ? sum(lengthsK) : batch * keys;
}

std::vector<std::int64_t> Problem::biasShape() const {
  const auto longest = [](const std::vector<std::int64_t> &lengths, std::int64_t dense) {
    return lengths.empty() ? dense : *std::max_element(lengths.begin(), lengths.end());
  };
  std::vector<std::int64_t> out = {sequences(), heads, longest(lengthsQ, queries), longest(lengthsK, keys)};
  for (unsigned d = 0; d < 4; ++d)
    if (!(*biasOf >> d & 1))
      out[d] = 1;
  return out;
}

std::size_t atBias(const Problem &p, std::int64_t sequence, std::int64_t head, std::int64_t i, std::int64_t j) {
  const std::vector<std::int64_t> shape = p.biasShape();
  std::int64_t out = 0;
  unsigned d = 0;
  for (const std::int64_t at : {sequence, head, i, j}) {
    out = out * shape[d] + (*p.biasOf >> d & 1 ? at : 0);
    ++d;
  }
  return static_cast<std::size_t>(out);
}

double keptShare(const Problem &p, std::int64_t sequence, std::int64_t head, std::int64_t i, std::int64_t j) {
  if (p.dropoutP == 0)
    return 1;
  const auto u32 = [](std::int64_t v) { return static_cast<std::uint32_t>(v); };
  const bool kept =
      kernels::Dropout(p.dropoutP, p.seed, p.dropoutOffset).keeps(u32(sequence), u32(head), u32(i), u32(j));
  return kept ? 1 / (1 - static_cast<double>(p.dropoutP)) : 0;
}

std::string Problem::text() const {
  const auto n = [](auto v) { return std::to_string(v); };
  std::string out = std::string(dtypeName(type)) + " B" + n(batch) + " Sq" + n(queries) + " Sk" + n(keys) + " H" +
                    n(heads) + "/" + n(keyHeads) + " D" + n(dim) + "/" + n(dimV);
  out += (causal ? " causal" : "") + std::string(" window ") + n(left) + "," + n(right);
  out += alignment == Alignment::TopLeft ? " top_left" : "";
  out += offset ? " offset " + n(*offset) : "";
  out += !hooks ? "" : std::string(" functions") + (hooks->blocks ? " blocks" : "");
  out += softcap > 0 ? " softcap " + n(softcap) : "";
  out += std::string(sink ? " sink" : "") + (alibi ? " alibi" : "") + (lse ? "" : " no lse") +
         (descale ? " descale" : "") + (deterministic ? " deterministic" : "") +
         (dropoutP > 0 ? " dropout " + n(dropoutP) : "") +
         (biasOf ? " bias " + n(*biasOf) + " " + std::string(dtypeName(biasType)) : "") +
         (lengthsQ.empty() ? "" : " packed of " + n(lengthsQ.size()) + ", T" + n(rowsQ()) + "/" + n(rowsK()));
  return out + (usedQ.empty() ? "" : " used_q") + (usedK.empty() ? "" : " used_k");
}

Problem with(std::int64_t queries, std::int64_t keys, DType type) {
  Problem p;
  p.queries = queries, p.keys = keys, p.type = type;
  return p;
}

Problem withOptions(unsigned options) {
  Problem p = with(65, 80, options % 2 ? DType::F16 : DType::BF16);
  p.softcap = options & 1 ? 15 : 0;
  p.sink = options & 2;
  p.alibi = options & 4;
  p.causal = options & 8;
  p.scale = p.softcap > 0 ? 0.125f : options & 8 ? 0.2f : 0;
  return p;
}

Data randomData(const Problem &p, std::mt19937_64 &random) {
  Data d;
  std::normal_distribution<double> normal;
  const auto fill = [&](Numbers &to, std::int64_t n, double factor = 1) {
    for (std::int64_t i = 0; i < n; ++i)
      to.push_back(rounded(normal(random) * factor, p.type));
  };
  fill(d.q, p.rowsQ() * p.heads * p.dim, p.cap() > 0 ? 2 * p.cap() : 1); // so that scores reach the cap
  fill(d.k, p.rowsK() * p.keyHeads * p.dim);
  fill(d.v, p.rowsK() * p.keyHeads * p.dimV);
  std::uniform_real_distribution<double> factor(0.25, 2);
  for (Numbers *to : {&d.descaleQ, &d.descaleK, &d.descaleV})
    for (std::int64_t i = 0; p.descale && i < p.sequences() * p.keyHeads; ++i)
      to->push_back(rounded(factor(random), DType::F32));
  for (std::int64_t h = 0; h < p.heads; ++h) {
    d.sink.push_back(normal(random));
    d.alibi.push_back(std::ldexp(1, -static_cast<int>(h) - 1));
  }
  if (p.biasOf) {
    const std::vector<std::int64_t> shape = p.biasShape();
    for (std::int64_t i = 0, n = shape[0] * shape[1] * shape[2] * shape[3]; i < n; ++i)
      d.bias.push_back(random() % 16 ? rounded(2 * normal(random), p.biasType) : -INFINITY);
  }
  return d;
}

void poisonUnused(const Problem &p, Data &d) {
  const auto poison = [&](Numbers &rows, std::int64_t width, const std::vector<std::int64_t> &lengths,
                          std::int64_t dense, const std::vector<std::int64_t> &used) {
    std::int64_t first = 0;
    for (std::size_t b = 0; b < used.size(); ++b) {
      const std::int64_t room = p.packed() ? lengths[b] : dense;
      std::fill(rows.begin() + (first + used[b]) * width, rows.begin() + (first + room) * width, NAN);
      first += room;
    }
  };
  poison(d.q, p.heads * p.dim, p.lengthsQ, p.queries, p.usedQ);
  poison(d.k, p.keyHeads * p.dim, p.lengthsK, p.keys, p.usedK);
  poison(d.v, p.keyHeads * p.dimV, p.lengthsK, p.keys, p.usedK);
}

void onlyHide(Numbers &bias) {
  for (double &b : bias)
    b = b == -INFINITY ? b : 0;
}

Data probeData(const Problem &p, std::int64_t by, std::mt19937_64 &random) {
  Data d = randomData(p, random);
  std::fill(d.q.begin(), d.q.end(), 0.0);
  std::fill(d.v.begin(), d.v.end(), 0.0);
  std::fill(d.alibi.begin(), d.alibi.end(), 0.0);
  onlyHide(d.bias);
  std::int64_t k0 = 0;
  const std::int64_t sequences = p.packed() ? std::ssize(p.lengthsK) : p.batch;
  for (std::int64_t b = 0; b < sequences; ++b) {
    const std::int64_t K = p.packed() ? p.lengthsK[static_cast<std::size_t>(b)] : p.keys;
    for (std::int64_t j = 0; j < K; ++j)
      for (std::int64_t h = 0; h < p.keyHeads; ++h)
        d.v[static_cast<std::size_t>(((k0 + j) * p.keyHeads + h) * p.dimV + (j + by) % p.dimV)] = 1;
    k0 += K;
  }
  return d;
}

namespace {

/// One sequence: where its rows start, how many it has room for, how many count.
struct Sequence {
  std::int64_t number, firstQ, firstK, queries, keys;
};

class Definition {
public:
  Definition(const Problem &p, const Data &d, bool roundSteps) : p(p), d(d), roundSteps(roundSteps), scaledK(d.k) {
    out.o.assign(static_cast<std::size_t>(p.rowsQ() * p.heads * p.dimV), NAN);
    out.lse.assign(static_cast<std::size_t>(p.rowsQ() * p.heads), NAN);
    out.slack.assign(out.lse.size(), 0);
    const double scale = p.scale > 0 ? p.scale : 1 / std::sqrt(static_cast<double>(p.dim));
    for (double &e : scaledK)
      e = step(e * scale);
  }

  Results all() {
    Sequence s{0, 0, 0, 0, 0};
    for (const std::int64_t n = p.packed() ? std::ssize(p.lengthsQ) : p.batch; s.number < n; ++s.number) {
      const auto b = static_cast<std::size_t>(s.number);
      const std::int64_t roomQ = p.packed() ? p.lengthsQ[b] : p.queries, roomK = p.packed() ? p.lengthsK[b] : p.keys;
      s.queries = p.usedQ.empty() ? roomQ : p.usedQ[b];
      s.keys = p.usedK.empty() ? roomK : p.usedK[b];
      for (std::int64_t h = 0; h < p.heads; ++h)
        for (std::int64_t i = 0; i < s.queries; ++i)
          row(s, h, i);
      s.firstQ += roomQ;
      s.firstK += roomK;
    }
    return std::move(out);
  }

private:
  double step(double v) const { return roundSteps && p.type != DType::F8E4M3 ? rounded(v, p.type) : v; }
  double output(double v) const { return roundSteps ? rounded(v, p.output()) : v; }
  double factor(const Numbers &of, const Sequence &s, std::int64_t keyHead) const {
    return p.descale ? of[static_cast<std::size_t>(s.number * p.keyHeads + keyHead)] : 1;
  }
  /// A power's share of the sum; of 8 bits powers themselves are rounded, where the largest is 2^8.
  double share(double power, double total) const {
    const double unit = p.type == DType::F8E4M3 ? 0x1p8 : 0;
    return !roundSteps ? power / total
           : unit > 0  ? rounded(power * unit, p.type) / unit / total
                       : rounded(power / total, p.type);
  }

  void row(const Sequence &s, std::int64_t h, std::int64_t i) {
    const std::int64_t kh = h / (p.heads / p.keyHeads), right = p.causal ? 0 : p.right;
    const std::int64_t at = i + (p.offset ? *p.offset : p.alignment == Alignment::BottomRight ? s.keys - s.queries : 0);
    const std::int64_t begin = p.left < 0 ? 0 : std::max<std::int64_t>(0, at - p.left),
                       end = right < 0 ? s.keys : std::min(s.keys, at + right + 1);
    const double *q = &d.q[static_cast<std::size_t>(((s.firstQ + i) * p.heads + h) * p.dim)];
    Numbers z;
    double mostOfProducts = 0; // that may be lost, in units of 2^-13, scaled
    const double descale = factor(d.descaleQ, s, kh) * factor(d.descaleK, s, kh);
    double most = p.sink ? d.sink[static_cast<std::size_t>(h)] : -INFINITY;
    for (std::int64_t j = begin; j < end; ++j) {
      const double *k = &scaledK[static_cast<std::size_t>(((s.firstK + j) * p.keyHeads + kh) * p.dim)];
      double sums[8] = {}; // the host adds several at a time
      for (std::int64_t c = 0; c < p.dim; c += 8)
        for (std::int64_t lane = 0; lane < 8; ++lane)
          sums[lane] += q[c + lane] * k[c + lane];
      double x = step(std::accumulate(std::begin(sums), std::end(sums), 0.0) * descale);
      if (p.type == DType::F8E4M3) {
        double lost = 0, sum = 0;
        for (std::int64_t c = 0; c < p.dim; c += 32) {
          double largest = std::abs(sum);
          for (std::int64_t i = c; i < std::min(p.dim, c + 32); ++i) {
            sum += q[i] * k[i];
            largest = std::max({largest, std::abs(q[i] * k[i]), std::abs(sum)});
          }
          lost += 33 * largest;
        }
        mostOfProducts = std::max(mostOfProducts, lost * std::abs(descale));
      }
      const Pair pair{s.number, h, i, j};
      if (p.hooks && p.hooks->score)
        x = step(p.hooks->score(x, pair));
      if (p.softcap > 0)
        x = step(p.softcap * std::tanh(x / p.softcap));
      if (p.alibi)
        x = step(x - d.alibi[static_cast<std::size_t>(h)] * static_cast<double>(std::abs(at - j)));
      if (p.biasOf)
        x = step(x + d.bias[atBias(p, s.number, h, i, j)]);
      if (!p.hasPair(pair))
        x = -INFINITY;
      z.push_back(x);
      most = std::max(most, x);
    }
    const double base = most == -INFINITY ? 0 : most;
    double total = p.sink ? std::exp(d.sink[static_cast<std::size_t>(h)] - base) : 0;
    for (double &e : z)
      total += e = std::exp(e - base);
    Numbers o(static_cast<std::size_t>(p.dimV));
    for (std::size_t j = 0; j < z.size(); ++j) {
      const double weight =
          share(z[j], total == 0 ? 1 : total) * keptShare(p, s.number, h, i, begin + static_cast<std::int64_t>(j));
      const std::int64_t key = s.firstK + begin + static_cast<std::int64_t>(j);
      const double *v = &d.v[static_cast<std::size_t>((key * p.keyHeads + kh) * p.dimV)];
      for (std::size_t c = 0; c < o.size(); ++c)
        o[c] += weight * v[c];
    }
    for (std::size_t c = 0; c < o.size(); ++c)
      out.o[static_cast<std::size_t>(((s.firstQ + i) * p.heads + h) * p.dimV) + c] =
          output(o[c] * factor(d.descaleV, s, kh));
    // lse of a packed call is [H, T], of a dense one [B, H, Sq].
    const std::int64_t to = p.packed() ? h * p.rowsQ() + s.firstQ + i : (s.number * p.heads + h) * p.queries + i;
    out.slack[static_cast<std::size_t>(to)] = 0x1p-13 * mostOfProducts;
    out.lse[static_cast<std::size_t>(to)] = total == 0 ? -INFINITY : base + std::log(total);
  }

  const Problem &p;
  const Data &d;
  const bool roundSteps;
  Numbers scaledK;
  Results out;
};

} // namespace

Results define(const Problem &p, const Data &d, bool roundSteps) {
  return Definition(p, d, roundSteps).all();
}

} // namespace kiln::test
