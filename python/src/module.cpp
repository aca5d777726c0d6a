#include <cstring>

#include "bindings.hpp"
#include "hurray/memory.hpp"
#include "hurray/version.hpp"

namespace {

/// Python's own messages name a class by this: the public name, on every Python.
void shorten_names(nanobind::module_& m) {
  for (nanobind::handle value : nanobind::cast<nanobind::dict>(m.attr("__dict__")).values())
    if (PyType_Check(value.ptr())) {
      auto* type = reinterpret_cast<PyTypeObject*>(value.ptr());
      if (const char* dot = std::strrchr(type->tp_name, '.')) type->tp_name = dot + 1;
    }
}

}  // namespace

NB_MODULE(_hurray, m) {
  using namespace hurray::python;
  // The extension has one set of classes, and asks for the lock of the main interpreter.
  if (PyInterpreterState_Get() != PyInterpreterState_Main())
    fail(PyExc_ImportError,
         "hurray works in the main interpreter of a process alone, not in a subinterpreter; use "
         "threads or processes");
  // What a DLPack capsule holds at the interpreter's end is left to the system: no leak to tell of.
  nanobind::set_leak_warnings(false);
  bind_exceptions(m);
  bind_dtype(m);
  bind_device(m);
  bind_buffer_handle(m);
  bind_layout(m);
  bind_statistics(m);
  bind_shard(m);
  bind_extension_type(m);
  bind_quantization(m);
  bind_descriptor(m);
  bind_tensor(m);
  bind_composite(m);
  bind_ingest(m);
  bind_sparse(m);
  bind_capsule(m);
  bind_create(m);
  bind_print_options(m);
  bind_aligned_allocator(m);
  bind_file(m);
  bind_save(m);
  bind_file_writer(m);
  bind_save_async(m);
  bind_formats(m);
  bind_share(m);
  bind_transport(m);
  bind_stream(m);
  bind_stream_decoder(m);
  bind_pickle(m);  // knows all classes
  shorten_names(m);
  m.attr("__version__") = HURRAY_VERSION;
  m.attr("MIN_BUFFER_ALIGNMENT") = hurray::min_buffer_alignment;
  m.attr("PAGE_ALIGNMENT") = hurray::page_alignment;
}
