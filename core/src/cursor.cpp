#include "hurray/cursor.hpp"

namespace hurray {

void Cursor::fail(Error error) noexcept {
  if (failed_) return;
  failed_ = true;
  error.origin = origin_;
  if (error.offset == Error::no_offset) error.offset = last_;
  error_ = error;
}

void Reader::missing(Field field, std::uint64_t n) noexcept {
  last_ = position_;
  fail({.code = Errc::truncated,
        .expect = Expect::exactly,
        .index = field.index,
        .field = field.name,
        .what = "bytes",
        .expected = n,
        .found = left()});
}

void Reader::fail(const Error& error) noexcept {
  Cursor::fail(error);
  end_ = position_;
}

}  // namespace hurray
