// Values: dequantize, to_dense, validate (09-models-and-frameworks.md section 5).

#include "exports.hpp"
#include "hurray/data_checks.hpp"
#include "hurray/dequantize.hpp"
#include "hurray/to_dense.hpp"

namespace hurray::python {
namespace {

/// Every rule of the descriptor holds, those too that its maker may have put off (Y7).
void require_valid(const Descriptor& d, EncodeOptions options = {}) {
  if (const auto valid = hurray::validate(d, options); !valid)
    fail(Exc::invalid_descriptor, to_string(valid.error()));
}

/// Bytes that this program may read, of a type, layout and scheme that it understands.
void require_understood(const PyTensor& t) {
  require_host_bytes(t, Way::array);
  require_valid(t.descriptor(), {.permissive = true});
  if (const auto why = opaque(t.descriptor()))
    fail(Exc::unsupported, "the elements of this " + std::string(name(t.descriptor().layout)) +
                               " tensor cannot be understood here: " + to_string(*why) +
                               "; buffer(i) gives the stored bytes");
}

void require_known_size(const Descriptor& d) {
  if (d.shape.is_dynamic())
    fail(Exc::unsupported,
         "the shape has a dynamic dimension, so that the number of elements is not known");
}

constexpr std::string_view paged_buffers =
    "its pages, block table and sequence pointers are buffer(0), buffer(1) and buffer(2)";

bool is_quantized(const Descriptor& d) noexcept { return d.quantization() != nullptr; }

nb::object dequantized(const PyTensor& t) {
  const Descriptor& d = t.descriptor();
  require_understood(t);
  if (!is_quantized(d))
    fail(Exc::unsupported,
         "this " + std::string(name(d.dtype)) +
             " tensor is not quantized: its elements are values already; to_numpy() or to_dense()"
             " gives them");
  require_known_size(d);
  auto values = without_gil([&] { return hurray::dequantize(t.tensor); });
  if (!values && values.error().field == "sequence_tokens")
    fail(Exc::unsupported,
         "this block_paged tensor does not say how many tokens each of its sequences has, so that"
         " they cannot be put in one row; " +
             std::string(paged_buffers));
  if (!values) throw_data_error(values.error());
  return wrap_tensor(*std::move(values));
}

nb::object densified(nb::handle self) {
  const PyTensor& t = self_of(self);
  const Descriptor& d = t.descriptor();
  require_understood(t);
  if (std::holds_alternative<BlockPaged>(d.layout))
    fail(Exc::unsupported,
         "a block_paged tensor has no elements row by row; " + std::string(paged_buffers));
  if (is_quantized(d))
    fail(Exc::unsupported, "this tensor is quantized (" +
                               std::string(name(d.quantization()->scheme)) +
                               "), and its stored codes are not its elements; dequantize() gives"
                               " these");
  if (ambiguous_bool(t)) refuse_ambiguous_bool(t);
  require_known_size(d);
  if (std::holds_alternative<RowMajor>(d.layout)) return nb::borrow(self);
  auto dense = without_gil([&] { return hurray::to_dense(t.tensor); });
  if (!dense) throw_data_error(dense.error());
  return wrap_tensor(*std::move(dense));
}

void validated(const PyTensor& t, bool data) {
  require_valid(t.descriptor());
  if (!data) return;
  require_understood(t);
  const auto checked = without_gil([&] { return hurray::check_data(t.tensor); });
  if (!checked) throw_data_error(checked.error());
}

}  // namespace

void throw_data_error(const Error& error, const std::string& where) {
  io::Error placed(error);
  if (!where.empty()) placed.detail = "in " + where;
  // A shape that nobody can have takes more memory than there is.
  if (error.field == "shape" &&
      (error.code == Errc::overflow || error.code == Errc::limit_exceeded))
    fail(PyExc_MemoryError, to_string(placed));
  if (hurray::raise(error) == Raise::buffer) fail(Exc::invalid_descriptor, to_string(placed));
  throw_error(placed);
}

void def_values(nb::class_<PyTensor>& type) {
  using namespace nb::literals;
  type.def("dequantize", &dequantized, nb::sig("def dequantize(self) -> Tensor"),
           "The real numbers that the stored codes stand for, as an own row-major float32 tensor "
           "of the\n"
           "same shape; shard and statistics are kept. What a sparse tensor does not store is 0. "
           "Takes 4\n"
           "bytes per element of the shape. Raises `UnsupportedError` for tensors that are not "
           "quantized,\n"
           "`InvalidDescriptorError` for scales, zero points and indices that break a rule, "
           "`MemoryError`\n"
           "where the shape takes more memory than there is.")
      .def(
          "to_dense", &densified, nb::sig("def to_dense(self) -> Tensor"),
          "The same elements row by row: an own row-major tensor of the same type and shape, with "
          "zeros\n"
          "where a sparse tensor stores nothing; a row-major tensor is returned itself. Shard and\n"
          "statistics that still hold are kept. Takes memory for every element of the shape. "
          "Raises\n"
          "`UnsupportedError` for quantized tensors (`dequantize`) and for block-paged, private "
          "and\n"
          "unknown layouts, `InvalidDescriptorError` for indices that break a rule, `MemoryError` "
          "where\n"
          "the shape takes more memory than there is.")
      .def(
          "validate", &validated, nb::kw_only(), "data"_a = true,
          nb::sig("def validate(self, *, data: bool = True) -> None"),
          "Returns `None` when every rule holds, else raises `InvalidDescriptorError` for the "
          "first that\n"
          "does not. With `data` the contents of index, scale and zero point buffers are judged as "
          "well:\n"
          "bounds, order, duplicates and values; the error names the buffer, the entry and its "
          "byte.");
}

}  // namespace hurray::python
