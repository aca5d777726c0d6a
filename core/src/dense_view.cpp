#include "hurray/dense_view.hpp"

#include "hurray/elements.hpp"

namespace hurray::detail {

Result<Strides> view_strides(const Tensor& tensor, DType dtype, std::size_t rank, bool writes,
                             bool codes) {
  return contain(Origin::descriptor, [&]() -> Result<Strides> {
    const Descriptor& d = tensor.descriptor();
    if (auto why = opaque(d)) return *why;
    if (auto may = host_readable(tensor); !may) return may.error();
    if (std::holds_alternative<CompositeHead>(d.layout))
      return Error{.code = Errc::unsupported,
                   .field = "layout_tag",
                   .what = "a composite head stores no elements: materialize it"};
    if (d.quantization() != nullptr && !codes)
      return Error{.code = Errc::unsupported,
                   .field = "quantization",
                   .what = "a view shows codes, not values: dequantize, or ask for View::codes"};
    if (d.dtype != dtype)
      return Error{.code = Errc::inconsistent,
                   .expect = Expect::type,
                   .field = "type_tag",
                   .expected = static_cast<std::uint64_t>(dtype),
                   .found = static_cast<std::uint64_t>(d.dtype)};
    if (d.shape.rank() != rank)
      return Error{.code = Errc::inconsistent,
                   .expect = Expect::exactly,
                   .field = "rank",
                   .expected = rank,
                   .found = d.shape.rank()};
    if (d.shape.is_dynamic())
      return Error{.code = Errc::unsupported, .field = "shape", .what = "a dynamic size"};
    auto strides = strides_of(d.layout, d.shape);
    if (!strides)
      return Error{.code = Errc::unsupported,
                   .field = "layout_tag",
                   .what = "a view needs strides: make the tensor row-major with to_dense"};
    if (writes && tensor.buffer(0).readonly())
      return Error{.code = Errc::unsupported,
                   .origin = Origin::buffer,
                   .index = 0,
                   .field = "buffers[]",
                   .what = "read-only memory: view it as const elements"};
    if (writes && !Strided{*strides}.codec(d.shape).has_inverse())
      return Error{.code = Errc::unsupported,
                   .field = "layout.strides",
                   .what = "elements share places: view them as const, or copy them first"};
    if (writes)
      if (auto made = tensor.buffer(0).make_writable(); !made) return made.error();
    return *std::move(strides);
  });
}

Result<void> view_alignment(const Tensor& tensor, std::size_t alignment) {
  const auto address = reinterpret_cast<std::uintptr_t>(tensor.buffer(0).data()) +
                       static_cast<std::uintptr_t>(tensor.descriptor().byte_offset);
  if (tensor.buffer(0).size() == 0 || address % alignment == 0) return {};
  return Error{.code = Errc::unsupported,
               .origin = Origin::buffer,
               .expect = Expect::at_least,
               .index = 0,
               .field = "buffers[].alignment",
               .what = "bytes at element [0,…,0]: view it as const elements",
               .expected = alignment,
               .found = std::uint64_t{address & (~address + 1)}};
}

}  // namespace hurray::detail
