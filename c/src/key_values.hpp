#pragma once

#include <deque>
#include <vector>

#include "hurray.h"
#include "hurray/io/key_values.hpp"

/// Metadata of files as C sees it (04-file.md section 4).
namespace hurray::c {

/// Borrowed views of `KeyValues`, which outlives this.
class KvViews {
 public:
  explicit KvViews(const io::KeyValues& kv);
  const std::vector<HurrayKvEntry>& entries() const noexcept { return entries_; }

 private:
  std::vector<HurrayKvEntry> entries_;
  std::deque<std::vector<std::uint8_t>> bools_;
  std::deque<std::vector<HurraySpan>> spans_;
};

/// A copy of what `entry` points to. OK, or the status with this thread's last error.
HurrayStatus copy(const HurrayKvEntry& entry, io::KeyValues::value_type& out);

}  // namespace hurray::c
