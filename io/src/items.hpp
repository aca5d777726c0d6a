#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "hurray/composite.hpp"
#include "hurray/io/buffer_source.hpp"
#include "hurray/io/error.hpp"

namespace hurray::io {

/// Puts tensors that come in emission order together to items. The rules are judged elsewhere.
class ItemBuilder {
 public:
  /// The item that `tensor` completes, if it does.
  std::optional<Item> add(Tensor tensor) {
    heads_.push_back({std::move(tensor)});
    while (is_complete(heads_.back())) {
      Item item = std::move(heads_.back());
      heads_.pop_back();
      if (heads_.empty()) return item;
      heads_.back().members.push_back(std::move(item));
    }
    return std::nullopt;
  }

  /// Those that wait for members, outermost first.
  std::vector<Item>& waiting() noexcept { return heads_; }

 private:
  static bool is_complete(const Item& item) noexcept {
    const auto* head = std::get_if<CompositeHead>(&item.tensor.descriptor().layout);
    return head == nullptr || head->member_count == item.members.size();
  }

  std::vector<Item> heads_;
};

/// What `checker` said, with the nested head that it is about.
inline Error inside(const hurray::Error& error, const CompositeChecker& checker) {
  Error result(error);
  if (const std::string where = checker.where(); !where.empty()) result.detail = "inside " + where;
  return result;
}

/// Why what was written cannot be finished. Precondition: `checker.open()`.
inline Error unfinished(const CompositeChecker& checker, Origin origin) {
  hurray::Error error = checker.torn();
  error.code = Errc::invalid_state;
  error.origin = origin;
  Error result = inside(error, checker);
  result.detail += result.detail.empty() ? "" : "; ";
  result.detail += "write the members that are missing first";
  return result;
}

}  // namespace hurray::io
