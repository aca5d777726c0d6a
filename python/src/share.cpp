#include "hurray/io/share.hpp"

#include <nanobind/stl/string.h>

#include <string>
#include <vector>

#include "bindings.hpp"
#include "key_values.hpp"
#include "named_item.hpp"
#include "waiting.hpp"

namespace hurray::python {
namespace {

/// A descriptor of sealed memory, which is the caller's to close.
int share(nb::handle tensors, nb::handle kv, const std::string& name) {
  auto [items, key_values, count] = save_arguments(tensors, kv);
  for (NamedItem& item : items)
    if (item.composite == nullptr) item.ready();
  auto image = without_gil([&] {
    return io::SharedImage::create(name,
                                   [&](io::FileWriter& writer) -> io::Result<void> {
                                     for (const NamedItem& item : items)
                                       if (auto written = item.write(writer); !written)
                                         return written;
                                     return {};
                                   },
                                   key_values, {.interrupted = signal_raised});
  });
  return unwrap_waited(std::move(image)).release();
}

}  // namespace

void bind_share(nb::module_& m) {
  m.def("_share", share, nb::arg("tensors"), nb::arg("kv").none(), nb::arg("name"),
        nb::sig("def _share(tensors: collections.abc.Mapping[str, typing.Any], kv: "
                "collections.abc.Mapping[str, typing.Any] | None, name: str) -> int"),
        "A descriptor of sealed memory that holds a `.hrry` image.");
}

}  // namespace hurray::python
