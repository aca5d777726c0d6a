// Five tensors in the format's own words: what each cannot do without is an argument, sizes, flags
// and buffer numbers follow, and `build` names the first rule that would be broken.
#include <iostream>
#include <string_view>

#include "hurray/builder.hpp"
#include "hurray/dense_view.hpp"

using namespace hurray;

namespace {

bool show(std::string_view what, const Result<Descriptor>& built) {
  if (!built) return std::cerr << to_string(built.error()) << '\n', false;
  std::cout << what << ": " << name(built->dtype) << ", " << name(built->layout) << '\n';
  for (std::size_t i = 0; i < built->buffers.size(); ++i) {
    const std::string_view own = role(built->layout, i);
    std::cout << "  buffer " << i << " (" << (own.empty() ? "parameters" : own)
              << "): " << built->buffers[i].byte_size << " bytes\n";
  }
  return true;
}

}  // namespace

int main() {
  // Rows of a float32 matrix, the first element 64 bytes into its buffer.
  const auto dense = DescriptorBuilder::row_major(DType::float32, {5, 7, 2})
                         .byte_offset(64)
                         .alignment(128)
                         .build();
  // A sparse matrix: values, col_indices, row_ptr.
  const auto csr = DescriptorBuilder::csr(DType::int16, {4, 6}, 5).build();
  // Four-bit weights, one float16 scale for 32 elements of a row.
  const auto quantized = DescriptorBuilder::row_major(DType::int4, {4096, 11008})
                             .per_block_affine(1, 32, DType::float16)
                             .build();
  // The keys of layer 7: three sequences on five of six pages, two token slots each.
  const auto paged =
      DescriptorBuilder::block_paged(
          DType::float16, {8, 3, 4},
          {.num_pages = 6, .page_size = 2, .num_seqs = 3, .layer_index = 7, .kv_role = KvRole::key},
          5)
          .build();
  // A matrix in two parts: the head, and each part as a box of it.
  const auto head = DescriptorBuilder::partition(DType::float32, {6, 5}, 2).build();
  const auto left =
      DescriptorBuilder::row_major(DType::float32, {6, 2}).shard_of({6, 5}, {0, 0}).build();
  const auto right =
      DescriptorBuilder::col_major(DType::float32, {6, 3}).shard_of({6, 5}, {0, 2}).build();
  if (!show("dense", dense) || !show("sparse", csr) || !show("quantized", quantized) ||
      !show("paged", paged) || !show("head", head) || !show("left", left) || !show("right", right))
    return 1;

  // What does not hold together is not built.
  const auto refused = DescriptorBuilder::csr(DType::int16, {4, 6}, 25).build();
  if (refused) return 1;
  std::cout << to_string(refused.error()) << '\n';

  // The dense one over real memory, as a multidimensional span.
  auto memory = Buffer::allocate(dense->buffers[0].byte_size, true, 128);
  if (!memory) return 1;
  const auto tensor = bind(*dense, {*memory});
  if (!tensor) return std::cerr << to_string(tensor.error()) << '\n', 1;
  const auto writable = DenseView<float, 3>::over(*tensor);
  if (!writable) return std::cerr << to_string(writable.error()) << '\n', 1;
  (*writable)(4, 6, 1) = 2.5f;
  const auto view = DenseView<const float, 3>::over(*tensor);
  return view && (*view)(4, 6, 1) == 2.5f && (*view)(0, 0, 0) == 0 ? 0 : 1;
}
