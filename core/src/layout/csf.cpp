#include "hurray/layout/csf.hpp"

namespace hurray {
namespace {

/// "pos[12][]" for every level.
struct LevelNames {
  struct Name {
    std::array<char, 10> text{};
    std::uint8_t size = 0;
  };
  std::array<Name, max_rank> names{};

  explicit constexpr LevelNames(std::string_view array) {
    for (std::size_t level = 0; level < max_rank; ++level) {
      Name& name = names[level];
      const auto add = [&](char c) { name.text[name.size++] = c; };
      for (const char c : array) add(c);
      add('[');
      if (level >= 10) add(static_cast<char>('0' + level / 10));
      add(static_cast<char>('0' + level % 10));
      for (const char c : std::string_view("][]")) add(c);
    }
  }
  std::string_view operator[](std::size_t level) const noexcept {
    return {names[level].text.data(), names[level].size};
  }
};

constexpr LevelNames pos_names("pos");
constexpr LevelNames crd_names("crd");

}  // namespace

std::string_view Csf::pointers(std::size_t level) noexcept { return pos_names[level]; }
std::string_view Csf::coordinates(std::size_t level) noexcept { return crd_names[level]; }

std::optional<Error> Csf::check_bounds(const IndexBuffers& buffers,
                                       const Shape& shape) const noexcept {
  std::uint64_t parents = 1;
  for (std::size_t level = 0; level < mode_order.size(); ++level) {
    const bool last = level + 1 == mode_order.size();
    const std::string_view what = last ? "(nnz)" : "(the coordinates that the level has room for)";
    const std::size_t i = 2 * level + 1;
    if (last)
      if (auto error = buffers.check_room(i + 1, nnz)) return error;
    if (auto error =
            buffers.check_pointers(i, pointers(level), parents, room(level, buffers), what))
      return error;
    if (last)
      if (auto error = buffers.check_total(i, pointers(level), parents, nnz)) return error;
    parents = pos(level, buffers)[parents];
    if (auto error =
            buffers.check_coordinates(i + 1, coordinates(level), parents, shape[mode_order[level]]))
      return error;
  }
  return std::nullopt;
}

std::optional<Error> Csf::check_canonical(const IndexBuffers& buffers,
                                          const Shape&) const noexcept {
  const std::uint64_t roots = pos(0, buffers).slice(0, dynamic).last;
  if (nnz == 0 && roots != 0)
    return buffers.at(pointers(0), 1,
                      {.code = Errc::inconsistent,
                       .expect = Expect::exactly,
                       .what = "nodes, since there are no leaves",
                       .expected = 0,
                       .found = roots});
  std::uint64_t parents = 1;
  for (std::size_t level = 0; level < mode_order.size(); ++level) {
    const IndexArray pointers_here = pos(level, buffers);
    if (parents >= pointers_here.size()) return index_buffers_changed();
    std::uint64_t judged = 0;
    for (std::uint64_t parent = 0; parent < parents; ++parent) {
      if (auto error = buffers.check_ascending(2 * level + 2, coordinates(level),
                                               children(level, parent, buffers).after(judged)))
        return error;
    }
    parents = pointers_here[parents];
  }
  return std::nullopt;
}

std::optional<Error> Csf::childless(const IndexBuffers& buffers) const noexcept {
  std::uint64_t parents = 1;
  for (std::size_t level = 0; nnz != 0 && level < mode_order.size(); ++level) {
    const IndexArray pointers_here = pos(level, buffers);
    if (parents >= pointers_here.size()) return index_buffers_changed();
    for (std::uint64_t parent = 0; parent < parents; ++parent)
      if (children(level, parent, buffers).empty())
        return buffers.at(pointers(level), parent + 1,
                          {.code = Errc::invalid_value,
                           .expect = Expect::at_least,
                           .what = "since every inner node has children",
                           .expected = pointers_here[parent] + 1,
                           .found = pointers_here[parent + 1]});
    parents = pointers_here[parents];
  }
  return std::nullopt;
}

std::optional<std::uint64_t> Csf::find(std::span<const std::uint64_t> index, const Shape&,
                                       const IndexBuffers& buffers) const noexcept {
  std::uint64_t node = 0;
  for (std::size_t level = 0; level < mode_order.size(); ++level) {
    const IndexSlice in = children(level, node, buffers);
    const IndexArray coordinates_here = crd(level, buffers);
    const std::uint64_t wanted = index[mode_order[level]];
    node = coordinates_here.lower_bound(in, wanted);
    if (node == in.last || coordinates_here[node] != wanted) return std::nullopt;
  }
  return node;
}

bool Csf::index_of(std::uint64_t slot, const Shape&, const IndexBuffers& buffers,
                   std::span<std::uint64_t> index) const noexcept {
  std::array<std::uint64_t, max_rank + 1> nodes{1};  // of the level above, so 1 above the root
  for (std::size_t level = 0; level < mode_order.size(); ++level) {
    const IndexArray pointers_here = pos(level, buffers);
    if (nodes[level] >= pointers_here.size()) return false;
    nodes[level + 1] = pointers_here[nodes[level]];
  }
  std::uint64_t node = slot;
  for (std::size_t level = mode_order.size(); level-- > 0;) {
    if (node >= room(level, buffers)) return false;
    index[mode_order[level]] = crd(level, buffers)[node];
    const auto parent = pos(level, buffers).slice_of(node, nodes[level]);
    if (!parent) return false;
    node = *parent;
  }
  return true;
}

}  // namespace hurray
