#include "named_item.hpp"

#include <algorithm>

#include "key_values.hpp"
#include "waiting.hpp"

namespace hurray::python {
namespace {

/// The class, the cause and the traceback stay; an exception that is more than a text (an `errno`)
/// stays whole.
void put_name_before(nb::python_error& error, const std::string& name) {
  const nb::object exception = nb::borrow(error.value());
  const nb::object arguments = nb::getattr(exception, "args", nb::none());
  if (!PyTuple_Check(arguments.ptr()) || nb::len(arguments) != 1) return;
  const nb::object words = arguments[0];
  if (!PyUnicode_Check(words.ptr())) return;
  const std::string prefix = "tensor \"" + name + "\": ";
  exception.attr("args") = nb::make_tuple(nb::str(prefix.c_str(), prefix.size()) + words);
}

/// `tensors=`: a mapping of names to values.
std::vector<NamedItem> named_items_argument(nb::handle tensors) {
  const nb::object pairs = mapping_items(tensors);
  if (!pairs.is_valid())
    fail(PyExc_TypeError, "tensors must be a mapping of names to tensors, such as {\"w\": array}");
  std::vector<NamedItem> items;
  for (nb::handle pair : pairs) items.push_back(NamedItem::of(nb::object(pair[0]), pair[1]));
  return items;
}

}  // namespace

NamedItem NamedItem::of(nb::handle name, nb::object value) {
  if (!PyUnicode_Check(name.ptr())) {
    fail(PyExc_TypeError,
         "a tensor's name must be a str, not " + nb::cast<std::string>(nb::repr(name)));
  }
  const PyComposite* composite = unwrap_composite(value);
  return {std::string(utf8_argument(name, "the name")), std::move(value), composite};
}

const WritableSource& NamedItem::ready() {
  if (!source) {
    try {
      source = writable_source(value);
    } catch (nb::python_error& error) {
      put_name_before(error, name);
      throw;
    }
  }
  if (!source) {
    fail(Exc::unsupported,
         "tensor \"" + name +
             "\": expected a hurray.Tensor, a hurray.Composite, an array (NumPy, PyTorch, DLPack) "
             "or an object with the buffer protocol, found a " +
             python::type_name(value) +
             "; make an array of it first, or put text and numbers into kv=");
  }
  return *source;
}

std::uint64_t NamedItem::bytes() {
  std::uint64_t bytes = 0;
  if (composite == nullptr) {
    for (const io::BufferSource& buffer : ready().buffers) bytes += buffer.size();
  } else {
    for_each_item(composite->item, [&](const hurray::Item& part, auto) {
      for (const Buffer& buffer : part.tensor.buffers()) bytes += buffer.size();
      return true;
    });
  }
  return bytes;
}

io::Result<void> NamedItem::check(const io::FileWriter& writer) {
  if (composite != nullptr) return writer.check_item(name, composite->item);
  const WritableSource& tensor = ready();
  return writer.check(name, tensor.descriptor, tensor.buffers);
}

io::Result<void> NamedItem::write(io::FileWriter& writer) const {
  if (composite != nullptr) return writer.write_item(name, composite->item);
  return writer.write(name, source->descriptor, source->buffers);
}

std::uint64_t check_names(std::span<const NamedItem> items) {
  struct Named {
    std::string name;
    const NamedItem*
        head;  ///< Of the composite that it belongs to; null for a name that was given.
  };
  std::vector<Named> all;
  for (const NamedItem& item : items) {
    all.push_back({item.name, nullptr});
    if (item.composite != nullptr)
      for (std::string& name : io::member_names(item.name, item.composite->item))
        all.push_back({std::move(name), &item});
  }
  std::ranges::sort(all, {}, &Named::name);
  const auto same = std::ranges::adjacent_find(all, {}, &Named::name);
  if (same == all.end()) return all.size();
  const NamedItem* head = same->head != nullptr ? same->head : std::next(same)->head;
  fail(Exc::file, "tensor \"" + same->name + "\": two tensors have this name" +
                      (head == nullptr ? ""
                                       : "; one is a member of the composite \"" + head->name +
                                             "\", so give the other, or the composite, another"));
}

SaveArguments save_arguments(nb::handle tensors, nb::handle kv) {
  SaveArguments arguments{named_items_argument(tensors), key_values_argument(kv), 0};
  unwrap(io::encode_kv(arguments.kv));
  arguments.tensors = check_names(arguments.items);
  return arguments;
}

io::WriteOptions write_options(bool checksums, bool sync) {
  io::WriteOptions options;
  options.sync = sync;
  options.checksums = checksums;
  options.interrupted = signal_raised;
  return options;
}

}  // namespace hurray::python
