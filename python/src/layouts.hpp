#pragma once

// What the files of layout classes share: one class per alternative of `hurray::Layout`.

#include "value_object.hpp"

namespace hurray::python {

/// The Python class of one alternative; it adds no member to its base.
template <class T>
struct LayoutOf : PyLayout {
  explicit LayoutOf(T layout) : PyLayout{hurray::Layout(std::move(layout))} {}
  const T& get() const noexcept { return *std::get_if<T>(&value); }
};

/// The constructor call of each layout.
Call call_of(const RowMajor& layout);
Call call_of(const ColumnMajor& layout);
Call call_of(const Strided& layout);
Call call_of(const Tiled& layout);
Call call_of(const Morton& layout);
Call call_of(const Hilbert& layout);
Call call_of(const Coo& layout);
Call call_of(const Csr& layout);
Call call_of(const Csc& layout);
Call call_of(const Csf& layout);
Call call_of(const BlockPaged& layout);
Call call_of(const CompositeHead& layout);
Call call_of(const PrivateLayout& layout);
Call call_of(const UnknownLayout& layout);

/// Raises `InvalidDescriptorError` unless the fields hold on their own, at rank `rank` and with
/// sizes that are not known.
void check_fields(const hurray::Layout& layout, std::size_t rank);

/// Rule and operation of a composite; `ValueError` for unknown ones and for those that do not go
/// together. It has no members yet.
CompositeHead composite_head_argument(nb::handle composition_rule, nb::handle combine_op);

/// A sequence of ints in the range of the list's, one per dimension.
template <class List>
List list_argument(nb::handle value, const char* name) {
  using Number = typename List::value_type;
  const auto items = sequence_argument(value, name);
  if (items.size() > max_rank)
    fail(Exc::invalid_descriptor, std::string(name) + " has " + std::to_string(items.size()) +
                                      " entries, at most " + std::to_string(max_rank) +
                                      " are possible");
  List list;
  list.resize(items.size());
  for (std::size_t k = 0; k < items.size(); ++k) {
    if constexpr (std::is_signed_v<Number>)
      list[k] = signed_argument(items[k], name);
    else
      list[k] = number_argument<Number>(items[k], name);
  }
  return list;
}

void bind_dense_layouts(nb::module_& m);
void bind_tiled_layout(nb::module_& m);
void bind_sparse_layouts(nb::module_& m);
void bind_block_paged_layout(nb::module_& m);
void bind_composite_layout(nb::module_& m);
void bind_opaque_layouts(nb::module_& m);

}  // namespace hurray::python
