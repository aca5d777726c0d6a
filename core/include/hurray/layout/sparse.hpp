#pragma once

#include <cstdint>

#include "hurray/cursor.hpp"
#include "hurray/shape.hpp"

namespace hurray {

/// The field `nnz` of every sparse layout: stored elements, at most as many as there are places
/// (02-layouts.md L11). The rule waits for dynamic sizes.
void nnz_field(auto& nnz, auto& io, const Shape& shape) {
  io("layout.nnz", nnz);
  if (shape.is_dynamic()) return;
  io.check(nnz <= shape.count(), {.code = Errc::out_of_bounds,
                                  .expect = Expect::at_most,
                                  .field = "layout.nnz",
                                  .what = "stored elements",
                                  .expected = shape.count(),
                                  .found = nnz});
}

}  // namespace hurray
