#include "hurray/tensor.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "hurray/data_checks.hpp"
#include "hurray/dequantize.hpp"
#include "hurray/elements.hpp"
#include "quantized_tensors.hpp"
#include "support.hpp"

namespace hurray::testing {
namespace {

bool divides(const Tensor& t) {
  for (std::size_t i = 0; i < t.buffers().size(); ++i) {
    const auto address = reinterpret_cast<std::uintptr_t>(t.buffer(i).data());
    if (t.descriptor().buffers[i].byte_size == 0) {
      if (t.descriptor().buffers[i].alignment != 1) return false;
    } else if (address % t.descriptor().buffers[i].alignment != 0) {
      return false;
    }
  }
  return true;
}

TEST(Buffers, OwnMemoryDeclaresWhatWasAskedFor) {
  for (const std::uint32_t alignment : {64u, 128u, 4096u}) {
    const auto b = Buffer::allocate(100, true, alignment);
    ASSERT_TRUE(b);
    EXPECT_EQ(b->alignment(), alignment);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(b->data()) % alignment, 0u);
    for (const std::byte byte : b->bytes()) EXPECT_EQ(byte, std::byte{0});
  }
  EXPECT_EQ(Buffer::allocate(10, false, 2u << 20)->alignment(), 4096u);
  EXPECT_EQ(Buffer::allocate(0)->alignment(), 1u);
  EXPECT_EQ(Buffer::allocate(8, false, 96).error().code, Errc::invalid_value);
  EXPECT_EQ(Buffer::allocate(8, false, 32).error().code, Errc::invalid_value);
  EXPECT_EQ(Buffer::allocate(std::uint64_t{1} << 62).error().code, Errc::out_of_memory);
  EXPECT_EQ(Buffer::allocate(dynamic).error().code, Errc::out_of_memory);
}

TEST(Buffers, BorrowedMemoryIsMeasuredAndReleasedOnce) {
  alignas(8192) static std::byte memory[16384];
  int released = 0;
  for (const std::size_t offset : {0u, 64u, 192u, 1u, 4096u}) {
    {
      auto b = Buffer::borrow(memory + offset, 256, [&] { ++released; }, false);
      ASSERT_TRUE(b);
      const Buffer share = *b;
      const Buffer part = b->view(64, 64);
      EXPECT_EQ(b->alignment(), measure_alignment(memory + offset, 256));
      EXPECT_LE(b->alignment(), 4096u);
      EXPECT_EQ(part.data(), memory + offset + 64);
    }
  }
  EXPECT_EQ(released, 5);
  EXPECT_EQ(measure_alignment(memory, 1), 4096u);
  EXPECT_EQ(measure_alignment(memory + 64, 1), 64u);
  EXPECT_EQ(measure_alignment(memory + 33, 1), 1u);
  EXPECT_EQ(measure_alignment(memory + 64, 0), 1u);
}

TEST(Bind, WritesSizesAndAlignmentsFromTheMemory) {
  Descriptor lie = dense(DType::float32, {3, 4});
  lie.buffers[0].alignment = 4096;
  lie.buffers[0].byte_size = 12345;
  const auto t = bind(lie, {*Buffer::allocate(48)});
  ASSERT_TRUE(t) << to_string(t.error());
  EXPECT_EQ(t->descriptor().buffers[0].byte_size, 48u);
  EXPECT_EQ(t->descriptor().buffers[0].alignment, 64u);
  EXPECT_TRUE(divides(*t));
  EXPECT_FALSE(t->readonly());
}

TEST(Bind, RefusesWhatTheBuffersContradict) {
  const auto small = bind(dense(DType::float32, {3, 4}), {*Buffer::allocate(47)});
  ASSERT_FALSE(small);
  EXPECT_EQ(small.error().origin, Origin::buffer);
  EXPECT_EQ(small.error().expected, 47u);
  EXPECT_EQ(small.error().found, 48u);

  auto memory = *Buffer::allocate(256);
  const auto odd = bind(dense(DType::uint8, {8}), {memory.view(4, 8)});
  ASSERT_FALSE(odd);
  EXPECT_EQ(odd.error().field, "buffers[].alignment");
  EXPECT_EQ(odd.error().found, 4u);
  EXPECT_EQ(raise(odd.error()), Raise::buffer);

  const auto two = bind(dense(DType::uint8, {8}), {memory, memory});
  ASSERT_FALSE(two);
  EXPECT_EQ(two.error().field, "buffer_count");

  Descriptor peer = dense(DType::uint8, {8});
  peer.buffers[0].memory_class = MemoryClass::peer;
  const auto impossible = bind(peer, {*Buffer::allocate(8)});
  ASSERT_FALSE(impossible);
  EXPECT_EQ(impossible.error().origin, Origin::buffer);
}

TEST(Bind, AnUnsyncedTensorRefusesItsBytesAndIsRelayedUnchanged) {
  Descriptor d = dense(DType::float32, {2});
  d.buffers[0].device = Device::cuda;
  d.buffers[0].sync_mode = SyncMode::event;
  d.buffers[0].alignment = 1024;
  const auto t = bind(d, {*Buffer::allocate(8)}, {.provenance = Provenance::outside});
  ASSERT_TRUE(t) << to_string(t.error());
  EXPECT_EQ(t->descriptor().buffers[0].alignment, 64u);
  EXPECT_EQ(t->wire_descriptor(), d);
  EXPECT_EQ(readable(*t).error().field, "buffers[].sync_mode");
  EXPECT_EQ(readable(*t).error().what, "event");
  EXPECT_EQ(buffer_tensor(*t, 0).error().code, Errc::unsupported);
  EXPECT_EQ(to_cpu(*t).error().code, Errc::unsupported);
}

TEST(Bind, ADeclaredDeviceIsKeptAndRelabelledOnRequest) {
  Descriptor d = dense(DType::float32, {2});
  d.buffers[0].device = Device::cuda;
  d.buffers[0].memory_class = MemoryClass::unified;
  const auto t = bind(d, {*Buffer::allocate(8)});
  ASSERT_TRUE(t);
  EXPECT_EQ(readable(*t).error().field, "buffers[].device_tag");
  const auto host = to_cpu(*t);
  ASSERT_TRUE(host);
  EXPECT_TRUE(readable(*host));
  EXPECT_EQ(host->buffer(0).data(), t->buffer(0).data());
  EXPECT_EQ(host->descriptor().buffers[0].memory_class, MemoryClass::standard);
  const auto raw = buffer_tensor(*t, 0);
  ASSERT_TRUE(raw);
  EXPECT_EQ(raw->descriptor().buffers[0].device, Device::cuda);
  EXPECT_EQ(raw->descriptor().shape, Shape{8});
  EXPECT_TRUE(divides(*raw));
}

TEST(Bind, CanonicalFormSaysNothingAboutTheMemory) {
  Descriptor d = dense(DType::uint8, {100});
  const auto t = bind(d, {*Buffer::allocate(100, false, 4096)});
  ASSERT_TRUE(t);
  EXPECT_EQ(t->descriptor().buffers[0].alignment, 4096u);
  EXPECT_EQ(t->wire_descriptor().buffers[0].alignment, 64u);
  const auto empty = bind(dense(DType::uint8, {0}), {Buffer()});
  ASSERT_TRUE(empty);
  EXPECT_EQ(empty->wire_descriptor().buffers[0].alignment, 1u);
}

TEST(Bind, SharesMemoryUntilTheLastShareIsGone) {
  int released = 0;
  alignas(64) static std::byte memory[64];
  std::optional<Tensor> kept;
  {
    auto b = Buffer::borrow(memory, 64, [&] { ++released; }, true);
    auto t = bind(dense(DType::uint8, {64}), {std::move(*b)});
    ASSERT_TRUE(t);
    EXPECT_TRUE(t->readonly());
    kept = *buffer_tensor(*t, 0);
  }
  EXPECT_EQ(released, 0);
  EXPECT_TRUE(kept->readonly());
  std::thread([&] { kept.reset(); }).join();
  EXPECT_EQ(released, 1);
}

Descriptor scheme_over(DType dtype, Shape shape, Scheme scheme, Layout layout = RowMajor{}) {
  Descriptor d;
  d.dtype = dtype;
  d.shape = std::move(shape);
  d.layout = std::move(layout);
  d.set_quantization(Quantization{scheme, {}});
  return d;
}

TEST(Bind, ASchemeThatDoesNotFitIsHeldOnRequestAndGoesNowhere) {
  const Buffer codes = *Buffer::allocate(8);
  const Buffer scales = *Buffer::allocate(8);
  struct Case {
    Descriptor descriptor;
    std::string_view field;
  };
  const Case cases[] = {
      {scheme_over(DType::uint8, {8}, PerBlockAffine{.block_size = 32}), "quantization.block_size"},
      {scheme_over(DType::uint8, {8}, PerChannelAffine{.axis = 1}), "quantization.axis"},
      {scheme_over(DType::uint8, {8}, PerChannelAffine{}), "buffers[].byte_size"},
      {scheme_over(DType::float16, {4}, PerChannelAffine{}), "quantization.scheme_tag"},
      {scheme_over(DType::uint8, {8}, Mxfp{}), "quantization.scheme_tag"},
      {scheme_over(DType::uint8, {dynamic}, PerChannelAffine{}), "quantization.axis"},
  };
  for (const Case& c : cases) {
    const auto refused = bind(c.descriptor, {codes, scales});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().field, c.field);
    const auto held = bind(c.descriptor, {codes, scales}, {.unfit_scheme = true});
    ASSERT_TRUE(held) << to_string(held.error());
    EXPECT_EQ(held->descriptor().buffers[1].byte_size, 8u);
    EXPECT_TRUE(buffer_tensor(*held, 1));
    EXPECT_EQ(validate_scheme(held->descriptor()).error().field, c.field);
    const auto why = opaque(held->descriptor());
    ASSERT_TRUE(why);
    EXPECT_EQ(why->field, c.field);
    EXPECT_EQ(raise(*why), Raise::invalid_descriptor);
    EXPECT_EQ(encode(held->wire_descriptor()).error().field, c.field);
    EXPECT_EQ(encode(held->wire_descriptor(), {.permissive = true}).error().field, c.field);
    EXPECT_EQ(Elements::over(*held).error().field, c.field);
    EXPECT_EQ(dequantize(*held).error().field, c.field);
    EXPECT_EQ(check_data(*held).error().field, c.field);
    EXPECT_TRUE(bind(held->descriptor(), held->buffers(), held->binding()));
  }
  const auto zero_point = bind(scheme_over(DType::uint8, {8}, PerTensorAffine{.zero_point = -1}),
                               {codes}, {.unfit_scheme = true});
  ASSERT_TRUE(zero_point);
  EXPECT_EQ(encode(zero_point->descriptor()).error().field, "quantization.zero_point");

  // What the scheme points at must be there all the same, and nothing may be left over.
  const auto no_scales =
      bind(scheme_over(DType::uint8, {8}, PerChannelAffine{}), {codes}, {.unfit_scheme = true});
  EXPECT_EQ(no_scales.error().field, "quantization.scale_buffer_index");
  const auto data = bind(scheme_over(DType::uint8, {8}, Nf4{.scale_buffer_index = 0}),
                         {codes, scales}, {.unfit_scheme = true});
  EXPECT_EQ(data.error().field, "quantization.scale_buffer_index");
  const auto left_over = bind(scheme_over(DType::uint8, {8}, PerTensorAffine{}), {codes, scales},
                              {.unfit_scheme = true});
  EXPECT_EQ(left_over.error().field, "buffer_count");
  // One that fits is not opaque.
  const auto fits = bind(scheme_over(DType::uint8, {2, 4}, PerChannelAffine{}), {codes, scales},
                         {.unfit_scheme = true});
  ASSERT_TRUE(fits);
  EXPECT_FALSE(opaque(fits->descriptor()));
  EXPECT_TRUE(encode(fits->descriptor()));
}

TEST(Bind, AroundAnUnknownLayoutBuffersAreHeldAndNotWritten) {
  Descriptor d = dense(DType::float32, {2});
  d.layout = UnknownLayout{.tag = LayoutTag{0x0C}, .tail = Blob(Bytes(3))};
  d.buffers.resize(2);
  EXPECT_EQ(bind(d, {*Buffer::allocate(8), *Buffer::allocate(4)}).error().field, "layout_tag");
  const auto t = bind(d, {*Buffer::allocate(8), *Buffer::allocate(4)}, {.permissive = true});
  ASSERT_TRUE(t) << to_string(t.error());
  EXPECT_EQ(t->descriptor().buffers[1].byte_size, 4u);
  EXPECT_EQ(t->descriptor().buffers[1].alignment, 64u);
  EXPECT_EQ(encode(t->descriptor()).error().field, "layout_tag");
  const auto permissive = encode(t->descriptor(), {.permissive = true});
  EXPECT_EQ(permissive.error().code, Errc::unsupported);
  Descriptor peer = d;
  for (BufferHandle& handle : peer.buffers) handle.memory_class = MemoryClass::peer;
  const auto impossible =
      bind(peer, {*Buffer::allocate(8), *Buffer::allocate(4)}, {.permissive = true});
  EXPECT_EQ(impossible.error().field, "buffers[].memory_class");
  Descriptor sharded = d;
  sharded.set_shard(Shard(std::array<std::uint64_t, 1>{2}, std::array<std::uint64_t, 1>{1}));
  EXPECT_FALSE(bind(sharded, {*Buffer::allocate(8), *Buffer::allocate(4)}, {.permissive = true}));
  // What was decoded has its table in the tail, and is passed on as it came.
  Descriptor relayed = d;
  relayed.buffers.resize(0);
  EXPECT_TRUE(encode(relayed, {.permissive = true}));
}

std::uint64_t number_at(const Tensor& t, std::size_t i) {
  return detail::load<std::uint64_t>(t.buffer(0).data() + 8 * i);
}

/// [[0, 7, 0], [0, 0, 9]].
Tensor csr(DType dtype = DType::int8, std::optional<Scheme> scheme = {}) {
  Descriptor d;
  d.dtype = dtype;
  d.shape = {2, 3};
  d.layout = Csr{.nnz = 2};
  std::vector<Bytes> parts{{std::byte{7}, std::byte{9}},
                           bytes_of<std::uint64_t>({1, 2}),
                           bytes_of<std::uint64_t>({0, 1, 2})};
  if (scheme) {
    d.set_quantization(Quantization{*scheme, {}});
    if (parameters(*scheme).buffers() != 0) parts.push_back(Bytes(8));
  }
  return tensor_of(std::move(d), parts);
}

TEST(Components, AreDenseTensorsOverTheSameMemory) {
  const Tensor t = csr();
  const auto values = component_tensor(t, 0);
  ASSERT_TRUE(values);
  EXPECT_EQ(values->descriptor().shape, Shape{2});
  EXPECT_EQ(values->descriptor().dtype, DType::int8);
  EXPECT_EQ(values->buffer(0).data(), t.buffer(0).data());
  const auto columns = component_tensor(t, 1);
  const auto pointers = component_tensor(t, 2);
  ASSERT_TRUE(columns && pointers);
  EXPECT_EQ(columns->descriptor().shape, Shape{2});
  EXPECT_EQ(pointers->descriptor().shape, Shape{3});
  EXPECT_EQ(number_at(*columns, 1), 2u);
  EXPECT_EQ(number_at(*pointers, 2), 2u);

  Descriptor coo;
  coo.dtype = DType::int8;
  coo.shape = {4, 5, 6};
  coo.layout = Coo{.nnz = 2};
  const Tensor listed = tensor_of(coo, {Bytes(9), Bytes(48)});
  EXPECT_EQ(component_tensor(listed, 0)->descriptor().shape, Shape{2});
  EXPECT_EQ(component_tensor(listed, 0)->buffer(0).size(), 9u);  // slack is not cut off
  EXPECT_EQ(component_tensor(listed, 1)->descriptor().shape, (Shape{2, 3}));

  Descriptor growing;
  growing.dtype = DType::int8;
  growing.shape = {dynamic, 3};
  growing.layout = Csr{.nnz = 1};
  const Tensor open = tensor_of(growing, {Bytes(1), Bytes(8), Bytes(8)});
  EXPECT_TRUE(component_tensor(open, 2)->descriptor().shape.is_dynamic());
}

TEST(Components, KeepWhatStillHoldsAndRefuseTheRest) {
  const auto scaled = component_tensor(csr(DType::int8, PerTensorAffine{.scale = 2}), 0);
  ASSERT_TRUE(scaled);
  EXPECT_NE(scaled->descriptor().quantization(), nullptr);
  const Tensor channels = csr(DType::int8, PerChannelAffine{.scale_buffer_index = 3});
  EXPECT_EQ(component_tensor(channels, 0).error().code, Errc::unsupported);
  EXPECT_EQ(component_tensor(channels, 1)->descriptor().quantization(), nullptr);
  const Tensor plain = *bind(dense(DType::uint8, {8}), {*Buffer::allocate(8)});
  EXPECT_EQ(component_tensor(plain, 0).error().field, "layout_tag");
}

TEST(Transpose, ExchangesLayoutsAndKeepsTheMemory) {
  const Tensor t = csr(DType::int8, PerChannelAffine{.scale_buffer_index = 3});
  const auto turned = transpose(t);
  ASSERT_TRUE(turned) << to_string(turned.error());
  EXPECT_EQ(turned->descriptor().layout, Layout(Csc{.nnz = 2}));
  EXPECT_EQ(turned->descriptor().shape, (Shape{3, 2}));
  EXPECT_EQ(parameters(turned->descriptor().quantization()->scheme).axis, 1u);
  EXPECT_EQ(turned->buffer(2).data(), t.buffer(2).data());
  EXPECT_EQ(transpose(*turned)->descriptor(), t.descriptor());

  Descriptor d = dense(DType::int16, {2, 3});
  d.set_shard(Shard(std::array<std::uint64_t, 2>{8, 9}, std::array<std::uint64_t, 2>{6, 1}));
  d.set_statistics(
      Statistics{.computed_mask = static_cast<std::uint32_t>(StatisticsBit::nnz) |
                                  static_cast<std::uint32_t>(StatisticsBit::nm_sparsity),
                 .nm_n = 1,
                 .nm_m = 2,
                 .nnz = 4});
  const auto box = transpose(*bind(d, {*Buffer::allocate(12)}));
  ASSERT_TRUE(box);
  EXPECT_EQ(box->descriptor().layout, Layout(ColumnMajor{}));
  EXPECT_EQ(*box->descriptor().shard(),
            Shard(std::array<std::uint64_t, 2>{9, 8}, std::array<std::uint64_t, 2>{1, 6}));
  EXPECT_TRUE(box->descriptor().statistics()->has(StatisticsBit::nnz));
  EXPECT_FALSE(box->descriptor().statistics()->has(StatisticsBit::nm_sparsity));
  EXPECT_EQ(transpose(*box)->descriptor().layout, Layout(RowMajor{}));

  Descriptor strided = dense(DType::int8, {2, 3});
  strided.layout = Strided{{-4, 1}};
  strided.byte_offset = 4;
  const auto reversed = transpose(*bind(strided, {*Buffer::allocate(8)}));
  ASSERT_TRUE(reversed);
  EXPECT_EQ(reversed->descriptor().layout, Layout(Strided{{1, -4}}));
  EXPECT_EQ(reversed->descriptor().byte_offset, 4u);
}

TEST(Transpose, RefusesWhatHasNoTransposedForm) {
  EXPECT_EQ(transpose(*bind(dense(DType::int8, {8}), {*Buffer::allocate(8)})).error().field,
            "rank");
  Descriptor morton = dense(DType::int8, {2, 2});
  morton.layout = Morton{{1, 1}};
  EXPECT_EQ(transpose(*bind(morton, {*Buffer::allocate(4)})).error().field, "layout_tag");
  const auto blocks =
      bind(scheme_over(DType::uint8, {2, 4}, PerBlockAffine{.axis = 1, .block_size = 4}),
           {*Buffer::allocate(8), *Buffer::allocate(8)});
  ASSERT_TRUE(blocks) << to_string(blocks.error());
  EXPECT_EQ(transpose(*blocks).error().field, "quantization.scheme_tag");
  const auto unfit = bind(scheme_over(DType::uint8, {2, 4}, PerChannelAffine{.axis = 7}),
                          {*Buffer::allocate(8), *Buffer::allocate(8)}, {.unfit_scheme = true});
  EXPECT_EQ(transpose(*unfit).error().field, "quantization.axis");
  Descriptor event = dense(DType::float32, {1, 2});
  event.buffers[0].device = Device::cuda;
  event.buffers[0].sync_mode = SyncMode::event;
  event.buffers[0].alignment = 1024;
  const auto waiting = transpose(*bind(event, {*Buffer::allocate(8)}));
  ASSERT_TRUE(waiting);
  EXPECT_EQ(waiting->wire_descriptor().buffers, event.buffers);
  EXPECT_EQ(buffer_tensor(*waiting, 0).error().code, Errc::unsupported);
}

}  // namespace
}  // namespace hurray::testing
