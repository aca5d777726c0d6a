#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "command.hpp"
#include "elements.hpp"
#include "members.hpp"
#include "opened.hpp"
#include "text.hpp"

namespace hurray::cli {
namespace {

/// More elements are summarised.
constexpr std::uint64_t most_elements = 1000;

/// Which indices of one dimension are shown: all, or so many at both ends.
struct Shown {
  std::uint64_t size = 0;
  std::uint64_t front = 0;
  std::uint64_t back = 0;

  bool all() const { return front == size; }
  std::uint64_t count() const { return front + back; }
};

std::vector<Shown> shown_of(const Shape& shape, bool summarised) {
  constexpr std::uint64_t edge = 3;
  constexpr std::uint64_t most_shown = 5000;
  std::vector<Shown> shown;
  for (const std::uint64_t size : shape) {
    const bool cut = summarised && size > 2 * edge;
    shown.push_back({size, cut ? edge : size, cut ? edge : 0});
  }
  if (!summarised) return shown;
  // So many dimensions that the ends of all are too much: of the outer ones, the first index.
  std::uint64_t total = 1;
  std::size_t kept = shown.size();
  while (kept > 0 && total <= most_shown / std::max<std::uint64_t>(shown[kept - 1].count(), 1)) {
    --kept;
    total *= std::max<std::uint64_t>(shown[kept].count(), 1);
  }
  for (std::size_t k = 0; k < kept; ++k) {
    shown[k].front = 1;
    shown[k].back = 0;
  }
  return shown;
}

/// Goes through the indices that are shown, and says what stands between them.
class Walk {
 public:
  struct Events {
    std::function<void()> open;
    std::function<void()> close;
    /// Before everything inside brackets but the first; how many dimensions what follows has.
    std::function<void(std::size_t)> between;
    std::function<void()> dots;
    std::function<io::Result<void>(std::span<const std::uint64_t>)> element;
  };

  Walk(const std::vector<Shown>& shown, const Events& events) : shown_(shown), events_(events) {}

  io::Result<void> run() { return dimension(0); }

 private:
  /// Recurses as deep as the rank, which is at most 64.
  io::Result<void> dimension(std::size_t k) {
    if (k == shown_.size()) return events_.element(index_);
    const Shown& shown = shown_[k];
    events_.open();
    const std::size_t rest = shown_.size() - k - 1;
    for (std::uint64_t i = 0; i < shown.size;) {
      if (i != 0) events_.between(rest);
      if (!shown.all() && i == shown.front) {
        events_.dots();
        i = shown.size - shown.back;
        if (i == shown.size) break;
        events_.between(rest);
      }
      index_.push_back(i);
      if (auto done = dimension(k + 1); !done) return done;
      index_.pop_back();
      ++i;
    }
    events_.close();
    return {};
  }

  const std::vector<Shown>& shown_;
  const Events& events_;
  std::vector<std::uint64_t> index_;
};

/// Text as NumPy has it.
class Text {
 public:
  Text(Session& session, std::size_t rank, std::size_t width)
      : session_(session), rank_(rank), width_(width) {}

  void open() {
    put("[");
    ++depth_;
  }
  void close() {
    put("]");
    --depth_;
  }
  void between(std::size_t rest) {
    if (rest == 0) {
      separate_ = true;
      return;
    }
    session_.output.write(std::string(rest, '\n') + std::string(depth_, ' '));
    column_ = depth_;
  }
  void cell(std::string_view text, bool dots = false) {
    const std::size_t wide = width_of(text);
    const std::size_t taken = dots || rank_ == 0 ? wide : std::max(wide, width_);
    if (std::exchange(separate_, false)) {
      if (session_.columns && column_ + 1 + taken + depth_ > *session_.columns) {
        session_.output.write('\n' + std::string(depth_, ' '));
        column_ = depth_;
      } else {
        put(" ");
      }
    }
    session_.output.write(std::string(taken - wide, ' '));
    session_.output.write(text);
    column_ += taken;
  }

 private:
  void put(std::string_view text) {
    session_.output.write(text);
    column_ += text.size();
  }

  Session& session_;
  std::size_t rank_;
  std::size_t width_;
  std::size_t depth_ = 0;
  std::size_t column_ = 0;
  bool separate_ = false;
};

/// What the widest of the first cells takes.
io::Result<std::size_t> width_of_cells(const SelectedElements& elements,
                                       const std::vector<Shown>& shown) {
  constexpr std::size_t most_measured = 5000;
  std::size_t width = 0;
  std::size_t seen = 0;
  std::optional<io::Error> failed;
  const Walk::Events events{
      .open = [] {},
      .close = [] {},
      .between = [](std::size_t) {},
      .dots = [] {},
      .element = [&](std::span<const std::uint64_t> index) -> io::Result<void> {
        if (++seen > most_measured) return io::Error();
        const auto code = elements.at(index);
        if (!code) {
          failed = code.error();
          return code.error();
        }
        width = std::max(width, element_text(elements.dtype(), *code).size());
        return {};
      }};
  (void)Walk(shown, events).run();
  if (failed) return *failed;
  return width;
}

int show_text(const SelectedElements& elements, bool summarised, Session& session) {
  const std::vector<Shown> shown = shown_of(elements.shape(), summarised);
  const auto width = width_of_cells(elements, shown);
  if (!width) return session.fail(width.error());
  Text text(session, elements.shape().rank(), *width);
  const Walk::Events events{
      .open = [&] { text.open(); },
      .close = [&] { text.close(); },
      .between = [&](std::size_t rest) { text.between(rest); },
      .dots = [&] { text.cell("...", true); },
      .element = [&](std::span<const std::uint64_t> index) -> io::Result<void> {
        const auto code = elements.at(index);
        if (!code) return code.error();
        text.cell(element_text(elements.dtype(), *code));
        return {};
      }};
  const auto done = Walk(shown, events).run();
  session.output.write("\n");
  return done ? 0 : session.fail(done.error());
}

int show_json(const io::FileSet& set, std::size_t entry, const SelectedElements& elements,
              bool summarised, Session& session) {
  // The first block is read before anything is written: an error is a document of its own then.
  if (!elements.shape().is_empty()) {
    const std::vector<std::uint64_t> first(elements.shape().rank());
    if (const auto code = elements.at(first); !code) return session.fail(code.error());
  }
  Json json(session.output);
  json.begin_document("cat");
  json.member("path", set.path());
  json.member("name", set.name(entry));
  json.member("dtype", dtype_text(elements.dtype()));
  json.key("shape");
  json.begin_array();
  for (const std::uint64_t size : elements.shape()) json.value(size);
  json.end_array();
  json.key("values");
  std::optional<io::Error> failed;
  if (summarised) {
    json.null();
  } else {
    const std::vector<Shown> shown = shown_of(elements.shape(), false);
    std::size_t depth = 0;
    const Walk::Events events{
        .open =
            [&] {
              json.begin_array();
              ++depth;
            },
        .close =
            [&] {
              json.end_array();
              --depth;
            },
        .between = [](std::size_t) {},
        .dots = [] {},
        .element = [&](std::span<const std::uint64_t> index) -> io::Result<void> {
          const auto code = elements.at(index);
          if (!code) return code.error();
          element_value(json, elements.dtype(), *code);
          return {};
        }};
    if (const auto done = Walk(shown, events).run(); !done) {
      // What was begun is ended, so that it can be read.
      failed = done.error();
      for (; depth != 0; --depth) json.end_array();
    }
  }
  if (failed) {
    json.key("error");
    json.begin_object();
    error_members(json, *failed);
    json.end_object();
  }
  json.end_document();
  if (!failed) return 0;
  complain(to_string(*failed));
  return exit_code(*failed);
}

int write_raw(const io::FileSet& set, std::size_t entry, std::size_t buffer, Session& session) {
  const auto [file, i] = set.place(entry);
  const auto tensor = file->tensor(i);
  if (!tensor) return session.fail(tensor.error());
  if (buffer >= tensor->buffers().size())
    return session.fail(io::Error(
        {.code = Errc::out_of_bounds,
         .origin = Origin::file,
         .field = "buffers",
         .what = "there is no buffer of this number"},
        set.path(), std::string(set.name(entry)),
        fmt::format("it has {}, counted from 0", plural(tensor->buffers().size(), "buffer"))));
  const auto bytes = tensor->buffer(buffer).bytes();
  session.output.write({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  return 0;
}

}  // namespace

int cat(const CatRequest& request, Session& session) {
  const auto set = open_any(request.path);
  if (!set) return session.fail(set.error());
  const auto entry = named(*set, request.name);
  if (!entry) return session.fail(entry.error());
  if (request.raw) return write_raw(*set, *entry, request.buffer, session);
  const auto descriptor = set->descriptor(*entry);
  if (!descriptor) return session.fail(descriptor.error());
  const auto selection = read_selection(request.index, descriptor->shape);
  if (!selection) {
    io::Error error = selection.error();
    error.path = set->path();
    error.tensor = request.name;
    return session.fail(error);
  }
  constexpr std::uint64_t block = std::uint64_t{1} << 16;
  const auto elements =
      SelectedElements::over(*set, *entry, *selection, request.all ? block : most_elements);
  if (!elements) return session.fail(elements.error());
  const bool summarised = !request.all && elements->shape().count() > most_elements;
  return session.json ? show_json(*set, *entry, *elements, summarised, session)
                      : show_text(*elements, summarised, session);
}

}  // namespace hurray::cli
