#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "hurray/descriptor.hpp"
#include "output.hpp"

/// A descriptor in words and as members of JSON objects.
namespace hurray::cli {

/// Declared bytes of all buffers; none where an unknown layout hides the buffer table.
std::optional<std::uint64_t> buffer_bytes(const Descriptor& descriptor);

/// The names of element type and layout, with the tag where the name does not say which.
std::string dtype_text(DType dtype);
std::string layout_text(const Layout& layout);
std::string shape_text(const Shape& shape);

/// What buffer `i` holds: the layout's word, "scales" and "zero_points" for quantization
/// parameters, "" where only a private layout's owner knows.
std::string role_text(const Descriptor& descriptor, std::size_t i);

/// What a list says of a tensor beside type, shape and layout: quantization, place in a composite.
std::string remarks(const Descriptor& descriptor);

/// The members that say what a tensor is. `bytes` is what its buffers take; without, null.
void descriptor_members(Json& json, const Descriptor& descriptor,
                        std::optional<std::uint64_t> bytes);

}  // namespace hurray::cli
