#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

#include "bindings.hpp"
#include "hurray/io/stream.hpp"

namespace hurray::python {

template <class T>
std::optional<T> limit_argument(nb::handle value, std::string_view name,
                                T max = std::numeric_limits<T>::max()) {
  if (value.is_none()) return std::nullopt;
  return static_cast<T>(unsigned_argument(value, name, max));
}

/// The keywords that all readers of streams share.
inline io::StreamReadOptions read_options(nb::handle descriptor_bytes, nb::handle buffer_bytes,
                                          nb::handle composite_depth,
                                          std::optional<bool> cross_machine,
                                          nb::handle tensor_bytes, nb::handle item_members,
                                          nb::handle expected_items) {
  io::StreamReadOptions options;
  options.agreed.all = true;  // 08-python-api.md section 7, Y16
  options.max_descriptor_bytes =
      limit_argument<std::uint32_t>(descriptor_bytes, "max_descriptor_bytes")
          .value_or(options.max_descriptor_bytes);
  options.max_buffer_bytes = limit_argument<std::uint64_t>(buffer_bytes, "max_buffer_bytes");
  options.max_tensor_bytes = limit_argument<std::uint64_t>(tensor_bytes, "max_tensor_bytes");
  options.expected_items = limit_argument<std::uint64_t>(expected_items, "expected_items");
  options.cross_machine = cross_machine;
  options.max_composite_depth =
      composite_depth_argument(composite_depth).value_or(options.max_composite_depth);
  options.max_item_members = limit_argument<std::uint64_t>(item_members, "max_item_members")
                                 .value_or(options.max_item_members);
  return options;
}

}  // namespace hurray::python
