// SciPy matrices and sparse_coo (08-python-api.md sections 13.5, 14.6).

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <numeric>
#include <span>

#include "exports.hpp"
#include "hurray/data_checks.hpp"
#include "numpy.hpp"

namespace hurray::python {
namespace {

constexpr auto most_of_scipy = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());

// ---- index arrays
// ---------------------------------------------------------------------------------

template <class T>
std::optional<std::uint64_t> widen(const std::byte* from, std::span<std::byte> to) noexcept {
  for (std::size_t i = 0; i < to.size() / sizeof(std::uint64_t); ++i) {
    const T index = detail::load<T>(from + i * sizeof(T));
    if constexpr (std::is_signed_v<T>)
      if (index < 0) return i;
    detail::store(to.data() + i * sizeof(std::uint64_t), static_cast<std::uint64_t>(index));
  }
  return std::nullopt;
}

/// Entries of `dtype` as uint64; the first negative one, where there is one.
std::optional<std::uint64_t> widen(DType dtype, const std::byte* from,
                                   std::span<std::byte> to) noexcept {
  switch (dtype) {
    case DType::int8:
      return widen<std::int8_t>(from, to);
    case DType::int16:
      return widen<std::int16_t>(from, to);
    case DType::int32:
      return widen<std::int32_t>(from, to);
    case DType::int64:
      return widen<std::int64_t>(from, to);
    case DType::uint8:
      return widen<std::uint8_t>(from, to);
    case DType::uint16:
      return widen<std::uint16_t>(from, to);
    case DType::uint32:
      return widen<std::uint32_t>(from, to);
    default:
      return widen<std::uint64_t>(from, to);
  }
}

/// Index arrays are uint64; other integers are widened, which is a copy (Y29).
Buffer index_buffer(const HostArray& array, Copy copy) {
  const ArraySource& source = array.source;
  const std::string what(array.component);
  if (source.shape.is_empty()) return {};
  if (source.dtype == DType::uint64) return row_major_buffer(array, copy);
  const DTypeInfo& type = *info(source.dtype);
  if ((type.kind != Kind::integer && type.kind != Kind::unsigned_integer) || type.bits < 8)
    fail(Exc::invalid_descriptor,
         what + " must be an array of integers, got " + std::string(type.name));
  if (copy == Copy::never)
    copy_required(array, std::string(type.name) +
                             " entries have to be widened to uint64, which is a copy (copy=None)");
  const std::uint64_t count = source.shape.count();
  const auto bytes = checked_mul<std::uint64_t>(count, sizeof(std::uint64_t));
  Buffer buffer = unwrap(Buffer::allocate(bytes.value_or(dynamic)));
  const auto negative = without_gil([&]() -> std::optional<std::uint64_t> {
    constexpr std::size_t step = 1024;  // entries; in bytes a multiple of `gather_granularity`
    alignas(std::uint64_t) std::array<std::byte, step * 3 * sizeof(std::uint64_t)> scratch;
    const std::size_t item = source.item_bytes;
    const std::uint64_t chunk = scratch.size() / item;
    for (std::uint64_t done = 0; done < count; done += chunk) {
      const auto n = static_cast<std::size_t>(std::min(chunk, count - done));
      gather(source, done * item, std::span(scratch).first(n * item));
      const auto found = widen(source.dtype, scratch.data(),
                               buffer.bytes().subspan(static_cast<std::size_t>(done) * 8, n * 8));
      if (found) return done + *found;
    }
    return std::nullopt;
  });
  if (negative) {
    std::string place = std::to_string(*negative);
    if (source.shape.rank() == 2)
      place = std::to_string(*negative / source.shape[1]) + ", " +
              std::to_string(*negative % source.shape[1]);
    fail(Exc::invalid_descriptor, what + "[" + place + "] is negative, and indices count from 0");
  }
  return buffer;
}

/// Raises what is wrong with the indices.
void require_indices(const std::optional<Error>& error, const char* cure = "") {
  if (!error) return;
  if (error->code == Errc::out_of_memory) throw_error(*error);
  fail(Exc::invalid_descriptor, to_string(*error) + cure);
}

hurray::Tensor bound(DType dtype, Shape shape, Layout layout, std::vector<Buffer> buffers) {
  Descriptor d;
  d.dtype = dtype;
  d.shape = std::move(shape);
  d.layout = std::move(layout);
  return unwrap(bind(std::move(d), std::move(buffers)));
}

// ---- sparse_coo
// -----------------------------------------------------------------------------------

nb::object sparse_coo(nb::handle values, nb::handle indices, nb::handle shape, nb::handle copy) {
  const Copy rule = copy_argument(copy);
  constexpr const char* call = "hurray.sparse_coo()";
  Shape sizes = shape_argument(shape, false, call);
  const auto wrong = [&](const std::string& what) {
    fail(Exc::invalid_descriptor, std::string(call) + ": " + what);
  };
  const HostArray elements = host_array_of(values, rule, "values");
  const HostArray coordinates = host_array_of(indices, rule, "indices");
  const auto text = [](const Shape& of) { return std::string(nb::str(wrap_shape(of)).c_str()); };
  if (elements.source.shape.rank() != 1)
    wrong("values must have one dimension, (nnz,), got shape " + text(elements.source.shape));
  const std::uint64_t nnz = elements.source.shape[0];
  const Shape& found = coordinates.source.shape;
  if (found.rank() != 2 || found[0] != nnz || found[1] != sizes.rank())
    wrong("indices must have shape (nnz, rank), here (" + std::to_string(nnz) + ", " +
          std::to_string(sizes.rank()) + "), got " + text(found));
  std::vector<Buffer> buffers;
  buffers.push_back(row_major_buffer(elements, rule));
  buffers.push_back(index_buffer(coordinates, rule));
  hurray::Tensor tensor =
      bound(elements.source.dtype, std::move(sizes), Coo{.nnz = nnz}, std::move(buffers));
  require_indices(without_gil([&] { return check_bounds(tensor); }));
  require_indices(without_gil([&] { return check_canonical(tensor); }),
                  "; add up entries of the same place first");
  return wrap_tensor(std::move(tensor));
}

// ---- from_scipy
// -----------------------------------------------------------------------------------

/// `values[order[k]]` for all k, one after another.
Buffer reordered(const hurray::Tensor& tensor, std::span<const std::uint64_t> order) {
  const unsigned width = bits(tensor.descriptor().dtype);
  const Buffer& values = tensor.buffer(0);
  if (width < 8) {
    std::vector<std::byte> items(order.size());
    std::vector<std::byte> moved(order.size());
    unpack(values.data(), width, 0, items);
    for (std::size_t k = 0; k < order.size(); ++k)
      moved[k] = items[static_cast<std::size_t>(order[k])];
    const ArraySource source{.origin = moved.data(),
                             .shape = Shape{order.size()},
                             .strides = Strides{1},
                             .dtype = tensor.descriptor().dtype,
                             .transcode = Transcode::pack_low};
    Buffer buffer = unwrap(Buffer::allocate(source.packed_size()));
    gather(source, 0, buffer.bytes());
    return buffer;
  }
  const std::size_t item = width / 8;
  Buffer buffer = unwrap(Buffer::allocate(order.size() * item));
  for (std::size_t k = 0; k < order.size(); ++k)
    std::memcpy(buffer.data() + k * item, values.data() + order[k] * item, item);
  return buffer;
}

/// The same matrix with the entries of each line in ascending order. Precondition: `check_bounds`
/// found nothing.
template <class Matrix>
hurray::Tensor sorted(const hurray::Tensor& tensor, const HostArray& values, Copy copy) {
  const Descriptor& d = tensor.descriptor();
  const auto nnz = static_cast<std::size_t>(std::get<Matrix>(d.layout).nnz);
  const IndexBuffers indices(tensor.buffers());
  std::vector<std::uint64_t> order(nnz);
  std::iota(order.begin(), order.end(), std::uint64_t{0});
  Buffer coordinates = unwrap(Buffer::allocate(nnz * sizeof(std::uint64_t)));
  without_gil([&] {
    const IndexArray unsorted = indices[1];
    for (std::uint64_t line = 0; line < d.shape[Matrix::major]; ++line) {
      const IndexSlice in = indices[2].slice(line, nnz);
      std::ranges::sort(std::span(order).subspan(in.first, in.last - in.first), {},
                        [&](std::uint64_t entry) { return unsorted[entry]; });
    }
    for (std::size_t k = 0; k < nnz; ++k)
      detail::store(coordinates.data() + k * sizeof(std::uint64_t), unsorted[order[k]]);
  });
  hurray::Tensor result =
      bound(d.dtype, d.shape, d.layout, {tensor.buffer(0), coordinates, tensor.buffer(2)});
  require_indices(without_gil([&] { return check_canonical(result); }),
                  "; add duplicates up first (m.sum_duplicates())");
  if (copy == Copy::never)
    copy_required(values, std::string("the ") + std::string(role(d.layout, 1)) +
                              " of some lines are not in ascending order, and sorting makes a copy"
                              " (copy=None)");
  return bound(d.dtype, d.shape, d.layout,
               {reordered(tensor, order), std::move(coordinates), tensor.buffer(2)});
}

template <class Matrix>
nb::object from_compressed(nb::handle matrix, Copy copy) {
  Shape shape = shape_argument(nb::object(matrix.attr("shape")), false, "hurray.from_scipy()");
  if (shape.rank() != 2)
    fail(Exc::unsupported, "a " + python::type_name(matrix) + " of " +
                               std::to_string(shape.rank()) +
                               " dimension(s) has no counterpart here, only matrices have");
  Matrix layout;
  const auto part = [&](const char* attribute, std::size_t i) {
    HostArray array = host_array_of(nb::object(matrix.attr(attribute)), copy, Matrix::role(i));
    if (array.source.shape.rank() != 1)
      fail(Exc::invalid_descriptor, std::string(array.component) +
                                        " must have one dimension, got " +
                                        std::to_string(array.source.shape.rank()));
    return array;
  };
  HostArray values = part("data", 0);
  HostArray coordinates = part("indices", 1);
  const HostArray pointers = part("indptr", 2);
  const std::uint64_t lines = shape[Matrix::major];
  if (pointers.source.shape[0] != lines + 1)
    fail(Exc::invalid_descriptor, std::string(pointers.component) + " must have " +
                                      std::to_string(lines + 1) + " entries, one more than the " +
                                      (Matrix::major == 0 ? "rows" : "columns") + ", got " +
                                      std::to_string(pointers.source.shape[0]));
  Buffer starts = index_buffer(pointers, copy == Copy::never ? Copy::if_needed : copy);
  // The arrays may be longer than what the pointers reach.
  const std::uint64_t stored = std::min(values.source.shape[0], coordinates.source.shape[0]);
  const IndexBuffers alone(std::span(&starts, 1));
  require_indices(alone.check_pointers(0, Matrix::pointers, lines, stored, "(entries there are)"));
  layout.nnz = alone[0][lines];
  values.source.shape[0] = layout.nnz;
  coordinates.source.shape[0] = layout.nnz;

  std::vector<Buffer> buffers;
  buffers.push_back(row_major_buffer(values, copy));
  buffers.push_back(index_buffer(coordinates, copy));
  buffers.push_back(copy == Copy::never ? index_buffer(pointers, copy) : std::move(starts));
  hurray::Tensor tensor = bound(values.source.dtype, std::move(shape), layout, std::move(buffers));
  require_indices(without_gil([&] { return check_bounds(tensor); }));
  if (without_gil([&] { return check_canonical(tensor); }))
    tensor = sorted<Matrix>(tensor, values, copy);
  return wrap_tensor(std::move(tensor));
}

nb::object from_scipy(nb::handle matrix, nb::handle copy) {
  const Copy rule = copy_argument(copy);
  import_optional("scipy", "scipy");
  const nb::module_ sparse = nb::module_::import_("scipy.sparse");
  if (!nb::cast<bool>(sparse.attr("issparse")(matrix)))
    fail(PyExc_TypeError, "expected a matrix of scipy.sparse, got " + python::type_name(matrix) +
                              "; hurray.asarray takes dense arrays");
  const auto format = nb::cast<std::string>(matrix.attr("format"));
  if (format == "csr") return from_compressed<Csr>(matrix, rule);
  if (format == "csc") return from_compressed<Csc>(matrix, rule);
  if (format == "coo")
    fail(Exc::unsupported,
         "a COO matrix of SciPy keeps rows and columns apart, and here they are one array of shape"
         " (nnz, 2); use hurray.sparse_coo(m.data, numpy.stack([m.row, m.col], axis=1), m.shape),"
         " or m.tocsr()");
  std::string upper = format;
  for (char& letter : upper)
    if (letter >= 'a' && letter <= 'z') letter = static_cast<char>(letter - 'a' + 'A');
  fail(Exc::unsupported,
       "the " + upper + " format of SciPy has no counterpart here; convert it first (m.tocsr())");
}

// ---- to_scipy
// -------------------------------------------------------------------------------------

/// Buffer `i` as SciPy counts: int64, the same bytes.
nb::object index_array(nb::handle self, const PyTensor& t, std::size_t i, std::uint64_t count) {
  const Buffer& buffer = t.tensor.buffer(i);
  return make_ndarray(numpy_dtype(DType::int64), Shape{count}, Strides{8}, buffer.data(),
                      !buffer.readonly(), nb::borrow(self));
}

nb::object to_scipy(nb::handle self) {
  const PyTensor* tensor = unwrap_tensor(self);
  if (tensor == nullptr)
    fail(PyExc_TypeError, "expected a hurray.Tensor, got " + python::type_name(self));
  const PyTensor& t = *tensor;
  import_optional("scipy", "scipy");
  const nb::module_ sparse = nb::module_::import_("scipy.sparse");
  require_host_bytes(t, Way::array);
  const Descriptor& d = t.descriptor();
  const bool csr = std::holds_alternative<Csr>(d.layout);
  if (!csr && !std::holds_alternative<Csc>(d.layout))
    fail(Exc::unsupported,
         std::holds_alternative<Coo>(d.layout)
             ? "a coo tensor has one array of coordinates, where SciPy has one per dimension; build"
               " it from .values and .indices: i = t.indices.to_numpy(),"
               " scipy.sparse.coo_array((t.values.to_numpy(), tuple(i.T)), t.shape)"
             : "a " + std::string(name(d.layout)) +
                   " tensor has no counterpart in SciPy, only csr and csc have");
  const std::size_t major = csr ? Csr::major : Csc::major;
  if (d.shape.is_dynamic())
    fail(Exc::unsupported, "the shape has a dynamic dimension, and a SciPy matrix has none");
  if (d.quantization() != nullptr)
    fail(Exc::unsupported, "the tensor is quantized (" +
                               std::string(name(d.quantization()->scheme)) +
                               "), and SciPy has no matrix of codes; buffer(0) has them");
  if (numpy_type(d.dtype) == nullptr)
    fail(Exc::unsupported, "SciPy has no matrices of " + std::string(name(d.dtype)) +
                               "; take the parts with .values and buffer(i)");
  const auto checked = without_gil([&] { return check_data(t.tensor, {.parameters = false}); });
  if (!checked) throw_data_error(checked.error());
  if (std::ranges::any_of(d.shape, [](std::uint64_t n) { return n > most_of_scipy; }))
    fail(Exc::unsupported,
         "SciPy counts in int64, and a dimension of this tensor reaches 2**63 or beyond");

  const nb::object stored = wrap_tensor(component_tensor(t.tensor, 0), t.device);
  const nb::object values = to_ndarray(stored, *unwrap_tensor(stored), Copy::if_needed, true);
  if (!t.tensor.readonly()) open_for_writing(t, Way::array);
  const std::uint64_t nnz = *nnz_of(d.layout);
  const nb::object parts = nb::make_tuple(values, index_array(self, t, 1, nnz),
                                          index_array(self, t, 2, d.shape[major] + 1));
  using namespace nb::literals;
  try {
    return sparse.attr(csr ? "csr_matrix" : "csc_matrix")(parts, "shape"_a = wrap_shape(d.shape),
                                                          "copy"_a = false);
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_Exception) || error.matches(PyExc_MemoryError)) throw;
    nb::raise_from(error, exception_class(Exc::unsupported), "SciPy cannot take this matrix of %s",
                   name(d.dtype).data());
  }
}

}  // namespace

void bind_sparse(nb::module_& m) {
  using namespace nb::literals;
  m.def("from_scipy", &from_scipy, "matrix"_a, nb::kw_only(), "copy"_a = nb::none(),
        nb::sig("def from_scipy(matrix: object, *, copy: bool | None = None) -> Tensor"),
        "A tensor of a `csr_matrix`, `csr_array`, `csc_matrix` or `csc_array`: the same stored\n"
        "elements, explicit zeros included. Values, indices and pointers are shared or copied each "
        "by\n"
        "the rule of `from_numpy`; indices that are not uint64 are widened, which is a copy, and "
        "lines\n"
        "that are not in ascending order are sorted on a copy. Raises `InvalidDescriptorError` "
        "naming\n"
        "the rule that indices or pointers break (duplicates too), `UnsupportedError` for other\n"
        "formats, `CopyRequiredError` naming the array under `copy=False`.");
  m.def("sparse_coo", &sparse_coo, "values"_a, "indices"_a, "shape"_a, nb::kw_only(),
        "copy"_a = nb::none(),
        nb::sig("def sparse_coo(values: object, indices: object, shape: "
                "collections.abc.Sequence[int], *, copy: bool | None = None) -> Tensor"),
        "A COO tensor of `values`, `(nnz,)`, at `indices`, `(nnz, rank)`, in `shape`. Nothing is\n"
        "claimed about their order. Copies, and raises, as `from_scipy` does.");
}

void def_sparse(nb::class_<PyTensor>& type) {
  type.def("to_scipy", &to_scipy, nb::sig("def to_scipy(self) -> typing.Any"),
           "A CSR tensor as `scipy.sparse.csr_matrix`, a CSC tensor as `csc_matrix`. Values share "
           "the\n"
           "memory; indices are passed as int64 over it, which SciPy may narrow, and then copies. "
           "Bounds\n"
           "and order are checked first. Raises `UnsupportedError` for other layouts, types that\n"
           "SciPy does not have, and quantized tensors.");
}

}  // namespace hurray::python
