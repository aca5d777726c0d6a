#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "hurray/descriptor.hpp"
#include "hurray/export.hpp"
#include "hurray/io/error.hpp"
#include "hurray/io/key_values.hpp"

namespace hurray::io {

/// How stored bytes become those of a buffer, unit by unit: a unit is the smallest number of
/// elements that takes whole bytes on both sides.
struct Conversion {
  std::uint32_t stored_bytes = 1;  ///< Of one unit in the file.
  std::uint32_t bytes = 1;         ///< Of one unit in the buffer.
  /// Converts `units` units; a last one that the file has only in part is filled up with zeros.
  /// Returns what is wrong with them, "" for nothing. Called by several threads at a time.
  std::string_view (*run)(const std::byte* stored, std::byte* out, std::size_t units) = nullptr;
};

/// Where the bytes of one buffer lie in a file of another format.
struct StoredBuffer {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;                  ///< Bytes in the file.
  const Conversion* conversion = nullptr;  ///< Null: they are the buffer's. Lives for ever.
};

/// A file of another format, seen as the `.hrry` file that a conversion would make of it
/// (09-models-and-frameworks.md section 2): descriptors, index and KV section are made here, the
/// bytes of buffers stay where they are and are converted while they are read. An immutable value
/// that shares what it holds.
class Translation {
 public:
  class Builder;

  /// The name of the format, such as "safetensors"; it lives for ever.
  HURRAY_EXPORT std::string_view format() const noexcept;
  /// Bytes of the `.hrry` file that is seen.
  HURRAY_EXPORT std::uint64_t size() const noexcept;

  struct State;
  const State& state() const noexcept { return *state_; }

 private:
  explicit Translation(std::shared_ptr<const State> state) noexcept : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

/// Makes a translation, tensor by tensor. Move-only; one thread at a time.
class HURRAY_EXPORT Translation::Builder {
 public:
  /// `format` lives for ever.
  explicit Builder(std::string_view format);
  Builder(Builder&&) noexcept;
  Builder& operator=(Builder&&) noexcept;
  ~Builder();

  /// A tensor, one `StoredBuffer` for each buffer of `descriptor`, with as many bytes as it says.
  /// Fails for names that a `.hrry` file cannot have and descriptors that cannot be encoded; names
  /// that occur twice are found when the file is opened.
  Result<void> add(std::string_view name, const Descriptor& descriptor,
                   std::span<const StoredBuffer> buffers);
  /// Call it once.
  Result<Translation> finish(const KeyValues& kv);

 private:
  std::unique_ptr<Translation::State> state_;
};

/// The bytes of a file that may be of another format.
struct ForeignSource {
  std::string_view path;  ///< In errors; may be empty.
  std::uint64_t size = 0;
  /// Fills `into` from `offset` on, which is within the file.
  std::function<Result<void>(std::span<std::byte> into, std::uint64_t offset)> read;
  std::uint64_t max_index_bytes = 0;  ///< Of headers that are read into memory.
};

/// Sees a file of another format as a `.hrry` file; none where it is of no format that is known
/// here. Errors need not name the path.
using ForeignReader = std::function<Result<std::optional<Translation>>(const ForeignSource&)>;

}  // namespace hurray::io
