// Files of other formats: conversion, safetensors, and stored bytes as they lie in a mapping.
#include "hurray/formats/convert.hpp"

#include <nanobind/stl/string.h>

#include <string>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "hurray/formats/safetensors.hpp"
#include "key_values.hpp"
#include "named_item.hpp"
#include "transport.hpp"
#include "waiting.hpp"

namespace hurray::python {
namespace {

void save_safetensors(nb::handle path, nb::handle tensors, nb::handle metadata, bool sync) {
  const std::string file = path_argument(path);
  auto [named, key_values, count] = save_arguments(tensors, metadata);
  std::vector<formats::SafetensorsItem> items;
  for (NamedItem& item : named) {
    if (item.composite != nullptr)
      fail(Exc::unsupported,
           "tensor \"" + item.name +
               "\": a safetensors file cannot hold composites; save a .hrry file");
    const WritableSource& source = item.ready();
    items.push_back({item.name, source.descriptor, source.buffers});
  }
  const io::ReplaceOptions options{.sync = sync, .interrupted = signal_raised};
  unwrap_waited(
      without_gil([&] { return formats::write_safetensors(file, items, key_values, options); }));
}

nb::dict safetensors_types() {
  nb::dict types;
  for (const auto& row : dtypes)
    if (const auto name = formats::safetensors_type(row.tag); !name.empty())
      types[wrap_utf8(row.name)] = wrap_utf8(name);
  return types;
}

}  // namespace

void bind_formats(nb::module_& m) {
  m.def("_save_safetensors", save_safetensors, nb::arg("path"), nb::arg("tensors"),
        nb::arg("metadata").none() = nb::none(), nb::kw_only(), nb::arg("sync") = true,
        nb::sig("def _save_safetensors(path: str | os.PathLike[str], tensors: "
                "collections.abc.Mapping[str, typing.Any], metadata: collections.abc.Mapping[str, "
                "typing.Any] | None = None, *, sync: bool = True) -> None"),
        "Write a safetensors file, whole or not at all, as the reference library does.");
  m.def("_safetensors_types", safetensors_types,
        nb::sig("def _safetensors_types() -> dict[str, str]"),
        "What safetensors calls each element type that it has.");
}

}  // namespace hurray::python
