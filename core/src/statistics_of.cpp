#include "hurray/statistics_of.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "hurray/data_checks.hpp"
#include "hurray/quantization_checks.hpp"
#include "row_dequantizer.hpp"

namespace hurray {
namespace {

constexpr std::uint64_t chunk = 1024;

/// A tensor whose values are those of another one, `times` over.
struct Once {
  Tensor tensor;
  std::uint64_t times = 1;
};

/// Without the dimensions in which nothing moves: zero strides, no parameters of their own.
Result<Once> without_repeats(const Tensor& tensor) {
  const Descriptor& d = tensor.descriptor();
  const auto* strided = std::get_if<Strided>(&d.layout);
  if (strided == nullptr || d.shape.is_empty()) return Once{tensor};
  std::optional<std::uint32_t> axis;
  if (d.quantization() != nullptr) {
    const SchemeParameters shared = parameters(d.quantization()->scheme);
    if (shared.block_size != 0) return Once{tensor};  // blocks of their own in every dimension
    axis = shared.axis;
  }
  Shape shape = d.shape;
  std::uint64_t times = 1;  // divides the count, which fits
  for (std::size_t k = 0; k < shape.rank(); ++k)
    if (strided->strides[k] == 0 && axis != k) times *= std::exchange(shape[k], 1);
  if (times == 1) return Once{tensor};
  Descriptor once;
  once.dtype = d.dtype;
  once.shape = std::move(shape);
  once.layout = d.layout;
  once.byte_offset = d.byte_offset;
  if (d.quantization() != nullptr) once.set_quantization(*d.quantization());
  auto bound = bind(std::move(once), tensor.buffers(), {.memory_device = tensor.memory_device()});
  if (!bound) return bound.error();
  return Once{*std::move(bound), times};
}

/// The stored elements of one tensor, as often as asked for: values as float64, in stretches.
class Values {
 public:
  static Result<Values> over(const Tensor& tensor, const ElementOptions& options) {
    const Descriptor& d = tensor.descriptor();
    if (info(d.dtype) == nullptr && opaque(d) == std::nullopt)
      return Error{.code = Errc::unsupported,
                   .field = "type_tag",
                   .what = "only its owner knows the values of a private type"};
    auto elements = Elements::over(tensor, {.sequence_tokens = options.sequence_tokens});
    if (!elements) return elements.error();
    if (ambiguous_bool(tensor))
      return Error{.code = Errc::unsupported,
                   .origin = Origin::buffer,
                   .index = 0,
                   .field = "buffers[]",
                   .what =
                       "a bool tensor with one byte for each element: either that, or packed "
                       "bits with room to spare, and the bytes do not say which"};
    if (std::holds_alternative<BlockPaged>(d.layout))
      if (auto tokens = elements->sequence_tokens(); !tokens) return tokens.error();
    if (options.canonical)
      if (auto error = check_canonical(tensor)) return *error;
    if (d.quantization() != nullptr)
      if (auto ok = check_parameters(tensor, options.sequence_tokens); !ok) return ok.error();
    auto once = without_repeats(tensor);
    if (!once) return once.error();
    if (once->times != 1) {
      elements = Elements::over(once->tensor);
      if (!elements) return elements.error();
    }
    Values values(*std::move(elements), once->times);
    if (auto done = values.open(); !done) return done.error();
    if (values.stored() <= options.max_elements) return values;
    return Error{.code = Errc::limit_exceeded,
                 .expect = Expect::at_most,
                 .field = "shape",
                 .what = "elements to look at (max_elements)",
                 .expected = options.max_elements,
                 .found = values.stored()};
  }

  /// How often each of them is an element of the tensor.
  std::uint64_t times() const noexcept { return times_; }

  /// Of a sparse tensor those that it stores.
  std::uint64_t stored() const noexcept {
    return nnz_ ? *nnz_ : tensor().descriptor().shape.count();
  }
  const std::optional<std::uint64_t>& nnz() const noexcept { return nnz_; }
  const Tensor& tensor() const noexcept { return elements_.tensor(); }
  bool is_complex() const noexcept { return row_->kind == Kind::complex; }

  /// `each(double)` for every stored element of a real tensor.
  template <class Each>
  Result<void> for_each(Each each) const {
    const Descriptor& d = tensor().descriptor();
    if (packed_) {
      std::array<double, chunk> values;
      const std::uint64_t count = stored();
      const std::byte* data = tensor().buffer(0).data() + *to_size(d.byte_offset);
      for (std::uint64_t first = 0; first < count; first += chunk) {
        const auto piece =
            std::span(values).first(static_cast<std::size_t>(std::min(chunk, count - first)));
        to_doubles(d.dtype, {data, *to_size(tensor().buffer(0).size() - d.byte_offset)}, first,
                   piece);
        for (const double value : piece) each(value);
      }
      return {};
    }
    if (rows_) {
      std::array<float, chunk> values;
      const std::uint64_t count = stored();
      for (std::uint64_t first = 0; first < count; first += chunk) {
        const auto piece =
            std::span(values).first(static_cast<std::size_t>(std::min(chunk, count - first)));
        rows_->fill(first, piece);
        for (const float value : piece) each(double{value});
      }
      return {};
    }
    if (d.quantization() == nullptr)
      return for_each_code([&](Code code, std::uint64_t) { each(to_double(d.dtype, code)); });
    const Quantized quantized(tensor());
    return for_each_code(
        [&](Code code, std::uint64_t entry) { each(double{quantized.value(code, entry)}); });
  }

  /// `each(code, parameter entry)`.
  template <class Each>
  Result<void> for_each_code(Each each) const {
    std::optional<Quantized> quantized;
    if (tensor().descriptor().quantization() != nullptr) quantized.emplace(tensor());
    std::optional<Error> failed;
    const auto visited =
        elements_.for_each([&](std::span<const std::uint64_t> index, std::int64_t slot) {
          const auto code = elements_.load(slot);
          if (!code) {
            failed = code.error();
            return false;
          }
          std::uint64_t entry = 0;
          if (quantized) entry = std::min(quantized->entry(index, slot), quantized->entries() - 1);
          each(*code, entry);
          return true;
        });
    if (!visited) return visited.error();
    if (failed) return *failed;
    return {};
  }

 private:
  Values(Elements elements, std::uint64_t times)
      : elements_(std::move(elements)), row_(info(tensor().descriptor().dtype)), times_(times) {}

  Result<void> open() {
    const Descriptor& d = tensor().descriptor();
    nnz_ = std::visit(
        []<class T>(const T& layout) -> std::optional<std::uint64_t> {
          if constexpr (SparseLayout<T>) return layout.nnz;
          return std::nullopt;
        },
        d.layout);
    // In these the order of the elements does not matter, but that none is missing or twice there.
    const bool in_rows = is_dense(d.layout) && !d.shape.is_empty() && is_row_major(d);
    if (d.quantization() == nullptr) {
      packed_ = in_rows || nnz_ || std::holds_alternative<ColumnMajor>(d.layout);
      return {};
    }
    if (!in_rows) return {};
    auto rows = RowDequantizer::over(tensor());
    if (!rows) return rows.error();
    rows_.emplace(std::move(*rows));
    return {};
  }

  Elements elements_;
  const DTypeInfo* row_;
  std::uint64_t times_;
  std::optional<std::uint64_t> nnz_;
  std::optional<RowDequantizer> rows_;
  bool packed_ = false;
};

/// Adds up without losing the small to the large (Neumaier).
class Sum {
 public:
  void add(double value) noexcept {
    const double sum = sum_ + value;
    lost_ += std::abs(sum_) >= std::abs(value) ? (sum_ - sum) + value : (value - sum) + sum_;
    sum_ = sum;
  }
  double value() const noexcept { return sum_ + lost_; }

 private:
  double sum_ = 0;
  double lost_ = 0;
};

void claim(Statistics& statistics, StatisticsBit bit) noexcept {
  statistics.computed_mask |= static_cast<std::uint32_t>(bit);
}

/// What one pass over all stored elements finds.
struct Extremes {
  std::uint64_t nonzero = 0;
  double least = std::numeric_limits<double>::infinity();
  double most = -std::numeric_limits<double>::infinity();
  bool nan = false;
  bool infinite = false;
  bool beyond_float64 = false;  // a finite float128

  void add(double value, bool zero) noexcept {
    nonzero += static_cast<std::uint64_t>(!zero);
    least = std::min(least, value);  // a NaN changes neither
    most = std::max(most, value);
  }
  void add(FloatClass what) noexcept {
    nan |= what == FloatClass::nan;
    infinite |= what == FloatClass::infinite;
  }
};

Result<Extremes> extremes_of(const Values& values) {
  Extremes found;
  const DType dtype = values.tensor().descriptor().dtype;
  const auto done = [&] {
    if (values.is_complex())
      return values.for_each_code([&](Code code, std::uint64_t) {
        bool zero = true;
        for (const Code half : complex_halves(dtype, code)) {
          found.add(classify(dtype, half));
          zero = zero && to_double(dtype, half) == 0;
        }
        found.nonzero += static_cast<std::uint64_t>(!zero);
      });
    if (dtype == DType::float128)
      return values.for_each_code([&](Code code, std::uint64_t) {
        const FloatClass what = classify(dtype, code);
        const double value = to_double(dtype, code);
        found.add(what);
        found.add(value, (code.low | code.high << 1) == 0);
        found.beyond_float64 |= what == FloatClass::finite && std::isinf(value);
      });
    return values.for_each([&](double value) {
      found.nan |= std::isnan(value);
      found.infinite |= std::isinf(value);
      found.add(value, value == 0);
    });
  }();
  if (!done) return done.error();
  return found;
}

/// `count` elements, of which those that are not stored are 0, none beyond `abs_max`.
Result<void> add_moments(const Values& values, double count, double unstored,
                         Statistics& statistics) {
  if (statistics.value_abs_max == 0) return {};
  int exponent = 0;
  (void)std::frexp(statistics.value_abs_max, &exponent);
  const double factor = std::ldexp(1.0, -std::clamp(exponent, -1000, 1000));
  Sum sum;
  if (auto done = values.for_each([&](double value) { sum.add(value * factor); }); !done)
    return done;
  const double mean = sum.value() / count;
  Sum squares;
  squares.add(unstored * (mean * mean));
  const auto done = values.for_each([&](double value) {
    const double distance = value * factor - mean;
    squares.add(distance * distance);
  });
  if (!done) return done;
  statistics.value_mean = mean / factor;
  statistics.value_stddev = std::sqrt(squares.value() / count) / factor;
  return {};
}

Result<Statistics> statistics_of_values(const Values& values) {
  const Shape& shape = values.tensor().descriptor().shape;
  const auto found = extremes_of(values);
  if (!found) return found.error();
  Statistics statistics;
  statistics.nnz = values.nnz().value_or(found->nonzero * values.times());
  statistics.has_nan = static_cast<std::uint8_t>(found->nan);
  statistics.has_inf = static_cast<std::uint8_t>(found->infinite);
  claim(statistics, StatisticsBit::nnz);
  claim(statistics, StatisticsBit::nan_inf);
  if (shape.is_empty()) return statistics;

  double count = 1;  // also where 64 bits do not hold it
  for (const std::uint64_t n : shape) count *= static_cast<double>(n);
  const double unstored =
      values.nnz() ? std::max(count - static_cast<double>(*values.nnz()), 0.0) : 0;
  statistics.sparsity_ratio = std::clamp(
      (count - static_cast<double>(values.nnz().value_or(found->nonzero))) / count, 0.0, 1.0);
  claim(statistics, StatisticsBit::sparsity);
  if (values.is_complex() || found->nan || found->beyond_float64) return statistics;

  statistics.value_min = unstored != 0 ? std::min(found->least, 0.0) : found->least;
  statistics.value_max = unstored != 0 ? std::max(found->most, 0.0) : found->most;
  statistics.value_abs_max =
      std::max(std::abs(statistics.value_min), std::abs(statistics.value_max));
  claim(statistics, StatisticsBit::value_range);
  if (found->infinite) return statistics;

  if (auto done = add_moments(values, count, unstored, statistics); !done) return done.error();
  claim(statistics, StatisticsBit::value_stats);
  return statistics;
}

}  // namespace

Result<Statistics> statistics_of(const Tensor& tensor, const ElementOptions& options) {
  return contain(Origin::buffer, [&]() -> Result<Statistics> {
    const auto values = Values::over(tensor, options);
    if (!values) return values.error();
    return statistics_of_values(*values);
  });
}

}  // namespace hurray
