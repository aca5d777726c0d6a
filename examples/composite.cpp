// Weights and a sparse correction to them travel as one item; the reader puts them together.
#include <cstdint>
#include <cstring>
#include <iostream>
#include <string_view>
#include <vector>

#include "hurray/builder.hpp"
#include "hurray/composite.hpp"
#include "hurray/dense_view.hpp"
#include "hurray/io/stream.hpp"
#include "hurray/materialize.hpp"

using namespace hurray;

namespace {

int fail(std::string_view why) {
  std::cerr << why << '\n';
  return 1;
}

/// Elements in memory of their own.
template <class T>
Result<Buffer> filled(const std::vector<T>& values) {
  auto memory = Buffer::allocate(values.size() * sizeof(T));
  if (memory) std::memcpy(memory->data(), values.data(), values.size() * sizeof(T));
  return memory;
}

Result<Tensor> weights() {
  const auto built =
      DescriptorBuilder::row_major(DType::float32, {2, 3}).shard_of({2, 3}, {0, 0}).build();
  if (!built) return built.error();
  const auto values = filled<float>({1, 2, 3, 4, 5, 6});
  if (!values) return values.error();
  return bind(*built, {*values});
}

/// Two of the six elements.
Result<Tensor> corrections() {
  const auto built =
      DescriptorBuilder::csr(DType::float32, {2, 3}, 2).shard_of({2, 3}, {0, 0}).build();
  if (!built) return built.error();
  const auto values = filled<float>({0.5f, -1});
  const auto columns = filled<std::int64_t>({2, 0});
  const auto row_ptr = filled<std::int64_t>({0, 1, 2});
  for (const auto* part : {&values, &columns, &row_ptr})
    if (!*part) return part->error();
  return bind(*built, {*values, *columns, *row_ptr});
}

}  // namespace

int main() {
  const auto base = weights();
  const auto correction = corrections();
  if (!base || !correction) return fail("the tensors could not be made");
  const auto sum = compose(CompositionRule::overlay, CombineOp::add, {2, 3}, DType::float32,
                           {{*base}, {*correction}});
  if (!sum) return fail(to_string(sum.error()));

  auto writer = io::StreamWriter::in_memory();
  if (!writer) return fail(to_string(writer.error()));
  if (const auto written = writer->write_item(*sum); !written)
    return fail(to_string(written.error()));

  auto reader = io::StreamReader::over(writer->bytes());
  if (!reader) return fail(to_string(reader.error()));
  const auto item = reader->next_item();
  if (!item) return fail(to_string(item.error()));
  if (!*item || !(*item)->is_composite()) return fail("no composite arrived");
  for (const Item& member : (*item)->members)
    std::cout << name(member.tensor.descriptor().layout) << '\n';

  const auto whole = materialize(**item);
  if (!whole) return fail(to_string(whole.error()));
  const auto view = DenseView<const float, 2>::over(*whole);
  if (!view || (*view)(0, 2) != 3.5f || (*view)(1, 0) != 3 || (*view)(1, 2) != 6) return 1;

  // A stream that ends between the members is torn, however complete each of them is.
  auto cut = io::StreamReader::over(writer->bytes().first(reader->position() - 1));
  if (!cut || cut->next_item()) return 1;
  return 0;
}
