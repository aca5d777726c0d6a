#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "hurray/buffer.hpp"
#include "hurray/descriptor.hpp"

namespace hurray {

/// Whether this program laid the elements out itself, or read what somebody else had written (D22).
enum class Provenance : std::uint8_t { own, outside };

struct BindOptions {
  Provenance provenance = Provenance::own;
  Device memory_device = Device::cpu;
  bool permissive = false;  ///< Also what only permissive mode reads; such a tensor is opaque.
  /// Also a quantization scheme that does not fit the tensor (`validate_scheme`): to look at. Such
  /// a tensor is opaque, and nobody writes its descriptor.
  bool unfit_scheme = false;
};

/// One descriptor and the memory it speaks of. Copying shares the memory. Values may be used from
/// any thread; nothing here changes after `bind`.
class Tensor {
 public:
  const Descriptor& descriptor() const noexcept { return descriptor_; }
  const std::vector<Buffer>& buffers() const noexcept { return buffers_; }
  const Buffer& buffer(std::size_t i) const noexcept { return buffers_[i]; }

  /// Some buffer refuses writes.
  bool readonly() const noexcept { return readonly_; }
  Provenance provenance() const noexcept { return provenance_; }
  /// Where the memory really is, whatever the descriptor declares (D19).
  Device memory_device() const noexcept { return memory_device_; }

  /// What a file or stream gets: the canonical form (D20), or, where a buffer is not
  /// producer-synced, the descriptor that came with the bytes, unchanged.
  HURRAY_EXPORT Descriptor wire_descriptor() const;

  /// The first buffer that is not producer-synced: nobody may hand out this tensor's bytes.
  HURRAY_EXPORT std::optional<std::size_t> unsynced_buffer() const noexcept;

  /// For binding the same memory once more: what this tensor was let through with, it is again.
  BindOptions binding() const noexcept {
    return {.provenance = provenance_,
            .memory_device = memory_device_,
            .permissive = true,
            .unfit_scheme = true};
  }

 private:
  friend HURRAY_EXPORT Result<Tensor> bind(Descriptor, std::vector<Buffer>, BindOptions);
  friend HURRAY_EXPORT Result<Tensor> to_cpu(const Tensor&);

  Descriptor descriptor_;
  std::vector<Buffer> buffers_;
  std::shared_ptr<const Descriptor> relayed_;
  Device memory_device_ = Device::cpu;
  Provenance provenance_ = Provenance::own;
  bool readonly_ = false;
};

/// The only code that writes sizes and alignments of a live tensor. `descriptor` says what bytes
/// cannot settle: element type, shape, layout, sections, and in its buffer table the declared
/// placement and sync mode of each buffer (an empty table: CPU, standard memory, producer-synced).
/// Sizes and alignments in it are replaced by what `buffers` are.
///
/// A tensor around an unknown layout (permissive) holds its buffers and is written by nobody: where
/// such a layout has its buffer table, only its owner knows.
/// Fails where the result breaks a rule of 01-descriptor.md section 6: with origin `buffer` for
/// buffers that are too small or badly aligned and for impossible placements, else with origin
/// `descriptor`.
HURRAY_EXPORT Result<Tensor> bind(Descriptor descriptor, std::vector<Buffer> buffers,
                                  BindOptions options = {});

/// Whether this program may read the tensor's bytes (08-python-api.md Y14): fails as `unsupported`
/// with field `buffers[].sync_mode` where a buffer is not producer-synced, then with
/// `buffers[].device_tag` where the declared device (`expected`, a tag) is not where the memory is
/// (`found`, a tag; D19).
HURRAY_EXPORT Result<void> readable(const Tensor& tensor);

/// The same memory under a descriptor that declares the CPU (D19). Fails as `unsupported` when the
/// memory is not the host's or a buffer is not producer-synced.
HURRAY_EXPORT Result<Tensor> to_cpu(const Tensor& tensor);

/// COO, CSR, CSC: each buffer is an array whose shape the descriptor gives.
HURRAY_EXPORT bool has_components(const Layout& layout) noexcept;

/// Part `i` of a COO, CSR or CSC tensor (`role` names it) as a dense tensor over the same memory,
/// with the tensor's placement: values `[nnz]` in the tensor's type, coordinates `[nnz]` or
/// `[nnz, rank]` and pointers `[lines + 1]` in uint64. Values keep a scheme without parameter
/// buffers; fails as `unsupported` for values under another one, since its parameters belong to
/// logical indices, for other layouts, and when a buffer is not producer-synced. Precondition: `i`
/// is one of the layout's own buffers.
HURRAY_EXPORT Result<Tensor> component_tensor(const Tensor& tensor, std::size_t i);

/// The same memory with its two dimensions exchanged: row-major and column-major become each other,
/// as do CSR and CSC; strides are reversed; shard and per-channel axis follow. Fails as
/// `inconsistent` (field `rank`) for another rank, as `unsupported` for other layouts and for
/// schemes whose blocks lie along an axis. An N:M pattern is no longer claimed: it is one of rows.
HURRAY_EXPORT Result<Tensor> transpose(const Tensor& tensor);

/// Buffer `i` as a rank-1 uint8 tensor of exactly its declared bytes, with the tensor's placement.
/// Fails as `unsupported` when a buffer is not producer-synced. Precondition: `i` exists.
HURRAY_EXPORT Result<Tensor> buffer_tensor(const Tensor& tensor, std::size_t i);

}  // namespace hurray
