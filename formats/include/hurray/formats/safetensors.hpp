#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hurray/descriptor.hpp"
#include "hurray/io/buffer_source.hpp"
#include "hurray/io/error.hpp"
#include "hurray/io/key_values.hpp"
#include "hurray/io/replace_file.hpp"

namespace hurray::formats {

/// The name that safetensors gives an element type, "" where it has none.
std::string_view safetensors_type(DType dtype) noexcept;

struct SafetensorsItem {
  std::string name;
  Descriptor descriptor;
  std::vector<io::BufferSource> buffers;  ///< Not owned.
};

/// Why a safetensors file cannot hold this tensor as it is; "" where it can: row-major elements of
/// a type that it knows, without quantization, statistics, shard or extension type.
std::string_view safetensors_cannot_hold(const Descriptor& descriptor) noexcept;

/// Writes a safetensors file in the order of the reference library (by element type, then by name),
/// whole or not at all; `metadata` are strings. Truth values become bytes. Fails, before the first
/// byte, as `unsupported` for the first tensor or entry that it cannot hold, and as `duplicate` for
/// a name that occurs twice.
io::Result<void> write_safetensors(std::string path, std::span<const SafetensorsItem> items,
                                   const io::KeyValues& metadata,
                                   const io::ReplaceOptions& options = {});

}  // namespace hurray::formats
