#include "runtime/device/emulator/decode/ControlFlow.h"

#include <algorithm>

namespace kiln::emulator {

FlowGraph::FlowGraph(std::span<const FlowEdge> flows, std::uint32_t begin, std::uint32_t end) {
  std::vector<char> leader(end - begin + 1, 0);
  auto lead = [&](std::uint32_t op) {
    if (op >= begin && op <= end)
      leader[op - begin] = 1;
  };
  lead(begin);
  for (std::uint32_t i = begin; i < end; ++i) {
    const FlowEdge &f = flows[i];
    if (f.kind == FlowEdge::Kind::Next)
      continue;
    lead(i + 1);
    if (f.kind == FlowEdge::Kind::Branch)
      lead(f.target);
    for (std::uint32_t t : f.targets)
      lead(t);
  }
  for (std::uint32_t i = begin; i < end; ++i)
    if (leader[i - begin])
      starts.push_back(i);
  starts.push_back(end);
  successors.resize(starts.size() - 1);
  for (std::size_t b = 0; b < successors.size(); ++b) {
    const std::uint32_t last = starts[b + 1] - 1;
    const FlowEdge &f = flows[last];
    auto to = [&](std::uint32_t op) {
      if (op >= begin && op < end)
        successors[b].push_back(blockOf(op));
    };
    if (f.kind == FlowEdge::Kind::Next || f.guarded)
      to(last + 1);
    if (f.kind == FlowEdge::Kind::Branch)
      to(f.target);
    for (std::uint32_t t : f.targets)
      to(t);
    std::sort(successors[b].begin(), successors[b].end());
    successors[b].erase(std::unique(successors[b].begin(), successors[b].end()), successors[b].end());
  }
}

std::uint32_t FlowGraph::blockOf(std::uint32_t op) const {
  return static_cast<std::uint32_t>(std::upper_bound(starts.begin(), starts.end(), op) - starts.begin()) - 1;
}

namespace {

/// Orders the blocks of one strongly connected region after another.  `region[b]` names the region that b belongs to
/// while the region is being ordered; edges to blocks of other regions do not count.
class Ordering {
public:
  explicit Ordering(const FlowGraph &graph)
      : graph(graph), region(graph.size(), 0), number(graph.size(), 0), low(graph.size(), 0) {}

  std::vector<std::uint32_t> result() {
    std::vector<std::uint32_t> roots{0};
    order(roots, 0, 0);
    std::vector<char> seen(graph.size(), 0);
    for (std::uint32_t b : out)
      seen[b] = 1;
    for (std::uint32_t b = 0; b < graph.size(); ++b)
      if (!seen[b])
        out.push_back(b);
    return std::move(out);
  }

private:
  struct Frame {
    std::uint32_t block;
    std::size_t next; ///< successors are visited from the last to the first: the first then comes out earliest
  };

  /// Tarjan's algorithm without recursion; components come out in reverse topological order.
  std::vector<std::vector<std::uint32_t>> components(const std::vector<std::uint32_t> &roots, std::uint32_t name) {
    std::vector<std::vector<std::uint32_t>> found;
    std::vector<std::uint32_t> stack;
    std::vector<Frame> frames;
    for (auto root = roots.rbegin(); root != roots.rend(); ++root) {
      if (region[*root] != name || number[*root])
        continue;
      frames.push_back({*root, graph.successors[*root].size()});
      number[*root] = low[*root] = ++counter;
      stack.push_back(*root);
      while (!frames.empty()) {
        Frame &f = frames.back();
        const std::uint32_t b = f.block;
        if (f.next > 0) {
          const std::uint32_t s = graph.successors[b][--f.next];
          if (region[s] != name)
            continue;
          if (!number[s]) {
            number[s] = low[s] = ++counter;
            stack.push_back(s);
            frames.push_back({s, graph.successors[s].size()});
          } else if (number[s] != done) {
            low[b] = std::min(low[b], number[s]);
          }
          continue;
        }
        frames.pop_back();
        if (!frames.empty())
          low[frames.back().block] = std::min(low[frames.back().block], low[b]);
        if (low[b] == number[b]) {
          std::vector<std::uint32_t> component;
          std::uint32_t member;
          do {
            member = stack.back();
            stack.pop_back();
            number[member] = done;
            component.push_back(member);
          } while (member != b);
          std::reverse(component.begin(), component.end()); // the root, which is the head, first
          found.push_back(std::move(component));
        }
      }
    }
    return found;
  }

  void order(const std::vector<std::uint32_t> &roots, std::uint32_t name, unsigned depth) {
    auto found = components(roots, name);
    for (auto c = found.rbegin(); c != found.rend(); ++c) {
      out.push_back(c->front());
      if (c->size() == 1)
        continue;
      if (depth > maxDepth) {
        std::sort(c->begin() + 1, c->end());
        out.insert(out.end(), c->begin() + 1, c->end());
        continue;
      }
      const std::uint32_t inner = ++regions;
      for (std::size_t i = 1; i < c->size(); ++i) {
        region[(*c)[i]] = inner;
        number[(*c)[i]] = 0;
      }
      const std::uint32_t head = c->front();
      std::vector<std::uint32_t> starts = graph.successors[head];
      // Irreducible regions may have blocks that the head does not reach without passing another entry.
      std::vector<std::uint32_t> rest(c->begin() + 1, c->end());
      std::sort(rest.begin(), rest.end());
      starts.insert(starts.end(), rest.begin(), rest.end());
      order(starts, inner, depth + 1);
    }
  }

  static constexpr unsigned maxDepth = 64;
  static constexpr std::uint32_t done = ~0u;
  const FlowGraph &graph;
  std::vector<std::uint32_t> region, number, low, out;
  std::uint32_t counter = 0, regions = 0;
};

} // namespace

std::vector<std::uint32_t> weakTopologicalOrder(const FlowGraph &graph) {
  return Ordering(graph).result();
}

} // namespace kiln::emulator
