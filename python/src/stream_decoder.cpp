#include "hurray/io/stream_decoder.hpp"

#include <nanobind/stl/optional.h>

#include <optional>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "read_options.hpp"
#include "waiting.hpp"

namespace hurray::python {
namespace {

/// `hurray.StreamDecoder`. Members are used by the thread whose turn it is.
class PyStreamDecoder {
 public:
  explicit PyStreamDecoder(const io::StreamReadOptions& options)
      : decoder_(unwrap(io::StreamDecoder::create(options))) {}

  /// A failure behind items that are complete is kept for the next call, so that what comes out
  /// does not depend on how the bytes were cut.
  nb::list feed(nb::handle data) {
    const BytesView bytes(data, "data");
    std::vector<Item> items = unwrap(turn_.take([&]() -> io::Result<std::vector<Item>> {
      return contain(Origin::stream, [&]() -> io::Result<std::vector<Item>> {
        std::vector<Item> complete;
        auto fed = decoder_.feed(bytes.bytes());
        while (auto item = decoder_.next_item()) complete.push_back(*std::move(item));
        if (!fed && complete.empty()) return std::move(fed).error();
        return complete;
      });
    }));
    nb::list wrapped;
    for (Item& item : items) wrapped.append(wrap_item(std::move(item)));
    return wrapped;
  }

  void finish() {
    unwrap(turn_.take([&] { return decoder_.finish(); }));
  }

 private:
  Turn turn_;
  io::StreamDecoder decoder_;
};

}  // namespace

void bind_stream_decoder(nb::module_& m) {
  nb::class_<PyStreamDecoder>(
      m, "StreamDecoder",
      "Tensors and composites out of a stream's bytes, whoever brings them and however they are "
      "cut: HTTP\n"
      "bodies, asyncio, gRPC, TLS. It does no I/O and never waits.\n\n"
      "One object may be used from several threads; calls come one after the other.")
      .def(
          "__init__",
          [](PyStreamDecoder* self, nb::handle descriptor_bytes, nb::handle buffer_bytes,
             nb::handle composite_depth, std::optional<bool> cross_machine, nb::handle tensor_bytes,
             nb::handle item_members, nb::handle expected_items) {
            new (self) PyStreamDecoder(read_options(descriptor_bytes, buffer_bytes, composite_depth,
                                                    cross_machine, tensor_bytes, item_members,
                                                    expected_items));
          },
          nb::kw_only(), nb::arg("max_descriptor_bytes") = nb::none(),
          nb::arg("max_buffer_bytes") = nb::none(), nb::arg("max_composite_depth") = nb::none(),
          nb::arg("cross_machine") = nb::none(), nb::arg("max_tensor_bytes") = nb::none(),
          nb::arg("max_item_members") = nb::none(), nb::arg("expected_items") = nb::none(),
          nb::sig("def __init__(self, *, max_descriptor_bytes: int | None = None, "
                  "max_buffer_bytes: int | None = None, max_composite_depth: int | None = None, "
                  "cross_machine: bool | None = None, max_tensor_bytes: int | None = None, "
                  "max_item_members: int | None = None, expected_items: int | None = None) -> "
                  "None"),
          "The limits of `StreamReader`. `cross_machine` (`None`: off) refuses tensors that are "
          "not "
          "producer-synced.")
      .def(
          "feed", &PyStreamDecoder::feed, nb::arg("data").none(),
          nb::sig("def feed(self, data: typing_extensions.Buffer) -> list[Tensor | Composite]"),
          "The items that `data`, the next bytes of the stream, make complete, in their order. The "
          "bytes are\n"
          "copied once, into each tensor's own memory on 64.\n\n"
          "Raises StreamError for malformed or oversized frames and torn composites, "
          "InvalidDescriptorError,\n"
          "UnsupportedError: by this call, or by the next one where items are complete before the "
          "fault, and\n"
          "by every call from then on. TypeError for what is not contiguous bytes.")
      .def("finish", &PyStreamDecoder::finish,
           "The stream ends here; idempotent. `feed` raises StreamError afterwards.\n\n"
           "Raises StreamError where a frame or a composite is cut, and where fewer items came "
           "than\n"
           "`expected_items`.");
}

}  // namespace hurray::python
