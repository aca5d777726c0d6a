#include "bindings.hpp"
#include "hurray/memory.hpp"
#include "hurray/version.hpp"

NB_MODULE(_hurray, m) {
  using namespace hurray::python;
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
  bind_stream(m);
  bind_pickle(m);  // knows all classes
  m.attr("__version__") = HURRAY_VERSION;
  m.attr("MIN_BUFFER_ALIGNMENT") = hurray::min_buffer_alignment;
  m.attr("PAGE_ALIGNMENT") = hurray::page_alignment;
}
