#include "hurray/layout/block_paged.hpp"

namespace hurray {
namespace {

constexpr std::string_view counts = "sequence_tokens[]";
constexpr auto unbounded = std::numeric_limits<std::uint64_t>::max();

Error unfit(std::uint64_t s, Error error) noexcept {
  error.code = Errc::inconsistent;
  error.field = counts;
  error.index = s;
  return error;
}

}  // namespace

std::optional<Error> BlockPaged::check_bounds(const IndexBuffers& buffers,
                                              const Shape& shape) const noexcept {
  const IndexArray table = buffers[1];
  if (auto error = buffers.check_pointers(2, pointers, num_seqs, table.size(),
                                          "(the entries that the block table has room for)"))
    return error;
  const std::uint64_t used = buffers[2][num_seqs];
  for (std::uint64_t i = 0; i < std::min(used, table.size()); ++i)
    if (table[i] >= num_pages) {
      Error error = beyond(table[i], num_pages);
      error.what = num_pages == 0 ? std::string_view("no page, since the pool has none")
                                  : std::string_view("as a page of the pool");
      return buffers.at(pages, i, error);
    }
  const std::uint64_t tokens = shape[0];
  const auto slots = checked_mul<std::uint64_t>(used, page_size);
  if (tokens != dynamic && slots && *slots < tokens)
    return buffers.at(pointers, num_seqs,
                      {.code = Errc::inconsistent,
                       .expect = Expect::at_least,
                       .what = "pages, since there are so many tokens",
                       .expected = tokens / page_size + (tokens % page_size != 0),
                       .found = used});
  return std::nullopt;
}

std::optional<Error> BlockPaged::check_exact(const IndexBuffers& buffers,
                                             const Shape& shape) const noexcept {
  const auto exactly = [](std::string_view field, std::string_view what, std::uint64_t expected,
                          std::uint64_t found) {
    return Error{.code = Errc::inconsistent,
                 .origin = Origin::buffer,
                 .expect = Expect::exactly,
                 .field = role_of(field),
                 .what = what,
                 .expected = expected,
                 .found = found};
  };
  const std::uint64_t entries = std::uint64_t{num_seqs} + 1;
  if (buffers[2].size() != entries)
    return exactly(pointers, "entries (num_seqs + 1)", entries, buffers[2].size());
  if (auto error = check_bounds(buffers, shape)) return error;
  const std::uint64_t used = buffers[2][num_seqs];
  if (used != buffers[1].size())
    return exactly(pages, "entries (the last of seq_ptr)", used, buffers[1].size());
  return std::nullopt;
}

std::uint64_t BlockPaged::capacity(std::uint64_t s, const IndexBuffers& buffers) const noexcept {
  const IndexSlice owned = buffers[2].slice(s, buffers[1].size());
  return checked_mul<std::uint64_t>(owned.last - owned.first, page_size).value_or(unbounded);
}

Result<std::vector<std::uint64_t>> BlockPaged::sequence_tokens(
    const IndexBuffers& buffers, const Shape& shape,
    std::span<const std::uint64_t> supplied) const {
  return contain(Origin::buffer, [&]() -> Result<std::vector<std::uint64_t>> {
    const std::uint64_t total = shape[0];
    if (!supplied.empty()) {
      if (supplied.size() != num_seqs)
        return Error{.code = Errc::inconsistent,
                     .expect = Expect::exactly,
                     .field = role_of(counts),
                     .what = "counts, one for each sequence",
                     .expected = num_seqs,
                     .found = supplied.size()};
      std::uint64_t sum = 0;
      for (std::size_t s = 0; s < supplied.size(); ++s) {
        const std::uint64_t most = std::min(capacity(s, buffers), total - sum);
        if (supplied[s] > most)
          return unfit(s, {.expect = Expect::at_most,
                           .what = "tokens, by the sequence's pages and the other counts",
                           .expected = most,
                           .found = supplied[s]});
        sum += supplied[s];
      }
      if (sum != total)
        return Error{.code = Errc::inconsistent,
                     .expect = Expect::exactly,
                     .field = role_of(counts),
                     .what = "tokens in all",
                     .expected = total,
                     .found = sum};
      return std::vector<std::uint64_t>(supplied.begin(), supplied.end());
    }
    if (auto error = buffers.check_room(2, std::uint64_t{num_seqs} + 1)) return *error;
    std::vector<std::uint64_t> tokens(num_seqs);
    if (total == 0) return tokens;
    const std::uint64_t used = buffers[2][num_seqs];
    const bool full = checked_mul<std::uint64_t>(used, page_size) == total;
    std::uint64_t sum = 0;
    for (std::size_t s = 0; s < tokens.size(); ++s) {
      const IndexSlice owned = buffers[2].slice(s, buffers[1].size());
      if (full)
        tokens[s] = (owned.last - owned.first) * page_size;
      else if (owned.last - owned.first == used)
        tokens[s] = total;
      else if (!owned.empty())
        return Error{.code = Errc::unsupported,
                     .field = role_of(counts),
                     .what =
                         "several sequences share the pages and some pages are not full: the "
                         "format does not say how many tokens each sequence has, pass them"};
      if (tokens[s] > total - sum) return index_buffers_changed();
      sum += tokens[s];
    }
    if (sum != total) return index_buffers_changed();
    return tokens;
  });
}

std::optional<std::uint64_t> BlockPaged::find(std::span<const std::uint64_t> index,
                                              const Shape& shape,
                                              const IndexBuffers& buffers) const noexcept {
  const IndexArray table = buffers[1];
  const IndexSlice owned = buffers[2].slice(index[0], table.size());
  const std::uint64_t logical = index[1] / page_size;
  if (logical >= owned.last - owned.first) return std::nullopt;
  const std::uint64_t page = table[owned.first + logical];
  if (page >= num_pages) return std::nullopt;
  return ((page * page_size + index[1] % page_size) * shape[1] + index[2]) * shape[2] + index[3];
}

}  // namespace hurray
