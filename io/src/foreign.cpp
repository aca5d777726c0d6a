#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>

#include "hurray/cursor.hpp"
#include "hurray/io/file.hpp"

namespace hurray::io {

namespace {

using namespace std::string_view_literals;

/// What files that begin with these bytes are, and what to do.
struct Beginning {
  std::string_view bytes;
  std::string_view is;
};

constexpr auto beginnings = std::to_array<Beginning>({
    {"HRRY\x01"sv,
     "a bare Hurray descriptor or a Hurray stream; `hurray inspect` shows a descriptor, a stream "
     "reader takes a stream"},
    {"GGUF"sv, "a GGUF model; `hurray convert` makes a .hrry file of it"},
    {"\x93NUMPY"sv, "a NumPy .npy array; load it with NumPy and save it as .hrry"},
    {"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19"sv,
     "a PyTorch checkpoint (old form); load it with PyTorch and save its tensors as .hrry"},
    {"\x89HDF\r\n\x1a\n"sv, "an HDF5 file; load it with h5py and save its arrays as .hrry"},
    {"\x1f\x8b"sv, "gzip-compressed; unpack it first"},
    {"\x28\xb5\x2f\xfd"sv, "zstd-compressed; unpack it first"},
    {"\xfd"
     "7zXZ\0"sv,
     "xz-compressed; unpack it first"},
});

constexpr auto lfs = "version https://git-lfs.github.com/spec/"sv;

/// "5.0 GB", in the units of hubs and disks.
std::string human(std::uint64_t bytes) {
  constexpr auto units = std::to_array<std::string_view>({"bytes", "kB", "MB", "GB", "TB", "PB"});
  if (bytes < 1000) return std::to_string(bytes) + " bytes";
  std::size_t unit = 0;
  std::uint64_t tenths = bytes;  // of the unit, once divided
  for (; tenths >= 999950 && unit + 2 < units.size(); ++unit)
    tenths = tenths / 1000 + (tenths % 1000 >= 500 ? 1 : 0);
  tenths = (tenths + 50) / 100;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " " +
         std::string(units[unit + 1]);
}

std::optional<std::string> lfs_pointer(std::string_view text) {
  if (!text.starts_with(lfs)) return std::nullopt;
  std::string is = "a Git LFS pointer";
  if (const auto line = text.find("\nsize "); line != std::string_view::npos) {
    const auto digits = text.substr(line + 6);
    std::uint64_t size = 0;
    const auto end = digits.data() + digits.size();
    if (std::from_chars(digits.data(), end, size).ec == std::errc()) is += " to " + human(size);
  }
  return is + "; run git lfs pull";
}

bool is_html(std::string_view text) noexcept {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  const auto start = text.find_first_not_of(" \t\r\n");
  if (start == std::string_view::npos) return false;
  text.remove_prefix(start);
  const auto begins = [&](std::string_view word) {
    return std::ranges::equal(text.substr(0, word.size()), word, {}, [](char c) {
      return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
  };
  return begins("<!doctype html") || begins("<html") || begins("<head");
}

/// The length of a JSON header, then the header.
bool is_safetensors(std::span<const std::byte> head, std::uint64_t size) noexcept {
  if (head.size() < 10 || head[8] != std::byte{'{'}) return false;
  const auto length = hurray::detail::load<std::uint64_t>(head.data());
  return length >= 2 && length <= size - 8;
}

std::optional<std::string> zip_archive(std::string_view text) {
  if (!text.starts_with("PK\x03\x04"sv) && !text.starts_with("PK\x05\x06"sv)) return std::nullopt;
  constexpr std::size_t name_at = 30;
  const auto first = text.size() > name_at ? text.substr(name_at) : ""sv;
  const auto holds = [&](std::string_view part) {
    return first.substr(0, 128).find(part) != std::string_view::npos;
  };
  if (holds("/data.pkl") || holds("/.format_version") || holds("/byteorder"))
    return "a PyTorch checkpoint; load it with PyTorch and save its tensors as .hrry";
  if (holds(".npy")) return "a NumPy .npz archive; load it with NumPy and save its arrays as .hrry";
  return "a zip archive; unpack it first";
}

}  // namespace

std::string describe_foreign_file(std::span<const std::byte> head, std::uint64_t size) {
  if (size == 0) return "an empty file; unfinished download or write?";
  const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  if (auto is = lfs_pointer(text)) return *is;
  if (is_html(text))
    return "an HTML page, perhaps an error or a login in place of the file; download it again";
  for (const Beginning& row : beginnings)
    if (text.starts_with(row.bytes)) return std::string(row.is);
  if (auto is = zip_archive(text)) return *is;
  if (is_safetensors(head, size))
    return "a safetensors file; `hurray convert` makes a .hrry file of it";
  if (std::ranges::all_of(head, [](std::byte b) { return b == std::byte{0}; }))
    return "nothing but zeros at the start; unfinished download or write?";
  if (text.starts_with("{")) return "a JSON text; if it lists files, open those";
  return {};
}

}  // namespace hurray::io
