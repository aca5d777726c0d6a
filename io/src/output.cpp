#include "output.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include "hurray/io/replace_file.hpp"
#include "hurray/result.hpp"
#include "patience.hpp"

namespace hurray::io {

namespace {

constexpr std::string_view suffix = ".hrry-tmp";
constexpr std::size_t random_characters = 6;
/// What a temporary's name has more than its target's: two dots, the characters, the suffix.
constexpr std::size_t added = 2 + random_characters + suffix.size();

system::Result<std::string> random_part() {
  constexpr std::string_view alphabet = "abcdefghijklmnopqrstuvwxyz234567";
  std::array<std::byte, random_characters> noise{};
  if (auto drawn = system::random_bytes(noise); !drawn) return drawn.error();
  std::string text;
  for (const std::byte b : noise) text += alphabet[static_cast<std::size_t>(b) % alphabet.size()];
  return text;
}

/// Removes what killed writers left: temporaries that nobody holds a lock on. Any failure leaves
/// them to the next writer.
void remove_leftovers(const system::Folder& folder, const std::string& prefix) {
  for (const std::string& name : folder.list(prefix, suffix)) {
    if (name.size() != prefix.size() + random_characters + suffix.size()) continue;
    const auto entry = folder.open_entry(name);
    if (!entry || system::try_lock(entry->number()) != system::Lock::taken) continue;
    const auto locked = system::status(entry->number());
    const auto named = folder.status(name);
    if (locked && named && *named && locked->same_file(**named)) (void)folder.remove(name);
  }
}

}  // namespace

Output::Output(system::Handle handle, std::string path, Origin origin,
               std::optional<Replacement> replacement)
    : handle_(std::move(handle)),
      path_(std::move(path)),
      origin_(origin),
      replacement_(std::move(replacement)) {}

Output::Output(Output&& other) noexcept
    : handle_(std::move(other.handle_)),
      path_(std::move(other.path_)),
      origin_(other.origin_),
      replacement_(std::exchange(other.replacement_, std::nullopt)),
      settled_(other.settled_) {}

Output& Output::operator=(Output&& other) noexcept {
  if (this == &other) return *this;
  abandon();
  handle_ = std::move(other.handle_);
  path_ = std::move(other.path_);
  origin_ = other.origin_;
  replacement_ = std::exchange(other.replacement_, std::nullopt);
  settled_ = other.settled_;
  return *this;
}

Result<Output> Output::create(std::string path, Origin origin, std::uint64_t expected_bytes,
                              const system::Interrupted& interrupted) {
  return contain(origin, [&]() -> Result<Output> {
    const auto target = system::status(path);
    if (!target) return system::to_error(target.error(), origin, std::move(path));
    if (*target && (*target)->kind == system::Kind::folder)
      return system::to_error({.number = EISDIR, .call = "open"}, origin, std::move(path));
    if (*target && (*target)->kind != system::Kind::regular) {
      auto handle = system::open_to_write(path, interrupted);
      if (!handle) return system::to_error(handle.error(), origin, std::move(path));
      return Output(*std::move(handle), std::move(path), origin);
    }
    auto output = replace(path, origin);
    if (output && expected_bytes != 0) {
      const auto space = system::free_space(output->descriptor());
      if (space && *space < expected_bytes) {
        Error full = system::to_error({.number = ENOSPC, .call = ""}, origin, std::move(path));
        full.field = "free space";
        full.what = "bytes";
        full.expect = Expect::at_least;
        full.expected = expected_bytes;
        full.found = *space;
        full.detail = "make room on this volume; nothing was written";
        return full;
      }
    }
    return output;
  });
}

Result<Output> Output::replace(std::string path, Origin origin) {
  const auto failed = [&](const system::Failure& failure) {
    return system::to_error(failure, origin, path);
  };
  const auto real = system::follow_links(path);
  if (!real) return failed(real.error());
  auto folder = system::Folder::of(*real);
  if (!folder) return failed(folder.error());
  const std::string name = real->substr(real->rfind('/') + 1);  // npos + 1 is 0
  if (name.empty()) return failed({.number = path.empty() ? ENOENT : EISDIR, .call = "open"});
  const auto old = folder->status(name);
  if (!old) return failed(old.error());

  const std::size_t longest = folder->longest_name();
  const std::string prefix =
      '.' + name.substr(0, longest > added ? longest - added : std::size_t{1}) + '.';
  remove_leftovers(*folder, prefix);

  Replacement replacement{*std::move(folder), {}, name, system::process_id()};
  for (;;) {
    const auto characters = random_part();
    if (!characters) return failed(characters.error());
    replacement.temporary = prefix + *characters + std::string(suffix);
    std::string copy = path;  // nothing may fail between a file that is there and its owner
    auto handle = replacement.folder.create(replacement.temporary, *old ? 0600u : 0666u);
    if (!handle) {
      if (handle.error().number == EEXIST) continue;
      return failed(handle.error());
    }
    // Another writer may take a temporary that is not locked yet for a leftover: then it is gone.
    const bool lost = system::try_lock(handle->number()) == system::Lock::held_elsewhere;
    const auto mine = system::status(handle->number());
    if (lost || (mine && mine->links == 0)) continue;
    Output output(*std::move(handle), std::move(copy), origin, std::move(replacement));
    if (*old) {
      if (auto set = system::set_permissions(output.descriptor(), (*old)->permissions); !set)
        return failed(set.error());
    }
    return output;
  }
}

Result<Output> Output::over(int descriptor, Origin origin) {
  return contain(origin, [&]() -> Result<Output> {
    auto handle = system::duplicate(descriptor);
    if (!handle) return system::to_error(handle.error(), origin, {});
    return Output(*std::move(handle), {}, origin);
  });
}

Result<void> Output::write(std::span<const std::span<const std::byte>> parts,
                           const system::Interrupted& interrupted,
                           const std::optional<std::chrono::milliseconds>& timeout) {
  return contain(origin_, [&]() -> Result<void> {
    auto written = system::write_all(handle_.number(), parts, interrupted, timeout);
    if (written) return {};
    const bool late = written.error() == system::timed_out();
    Error error = system::to_error(written.error(), late ? Origin::stream : origin_, path_);
    if (late) error.detail = "no byte was taken within the time limit (the socket's own)";
    return error;
  });
}

Result<void> Output::settle(bool sync) {
  return contain(origin_, [&]() -> Result<void> {
    const auto target = system::status(handle_.number());
    auto done = target ? system::Result<void>() : system::Result<void>(target.error());
    if (done && target->kind == system::Kind::regular)
      done = sync ? system::sync(handle_.number()) : system::flush(handle_.number());
    if (!done) return system::to_error(done.error(), origin_, path_);
    settled_ = true;
    return {};
  });
}

Result<void> Output::commit(bool sync) {
  return contain(origin_, [&]() -> Result<void> {
    struct Close {
      Output& output;
      ~Close() { output.abandon(); }
    } close{*this};

    if (!settled_)
      if (auto settled = settle(sync); !settled) return settled;
    system::Result<void> done;
    if (replacement_) {
      done = replacement_->folder.rename(replacement_->temporary, replacement_->target);
      if (done) {
        const auto replaced = std::exchange(replacement_, std::nullopt);
        if (sync) done = replaced->folder.sync();
      }
    }
    if (!done) return system::to_error(done.error(), origin_, path_);
    return {};
  });
}

Result<void> replace_file(std::string path, std::span<const std::byte> bytes, bool sync) {
  return replace_file_with(std::move(path), [&](const PutBytes& put) { return put(bytes); },
                           {.sync = sync});
}

Result<void> replace_file_with(std::string path,
                               const std::function<Result<void>(const PutBytes&)>& write,
                               const ReplaceOptions& options) {
  return contain(Origin::file, [&]() -> Result<void> {
    Patience patience(options.interrupted);
    const auto question = patience.question();
    auto output =
        Output::create(std::move(path), Origin::file, options.expected_bytes, options.interrupted);
    if (!output) return std::move(output).error();
    const auto put = [&](std::span<const std::byte> bytes) -> Result<void> {
      if (auto written = output->write({&bytes, 1}, question); !written) return written;
      if (patience.ended())
        return system::to_error(system::stopped(), Origin::file, output->path());
      return {};
    };
    if (auto written = write(put); !written) return written;
    return output->commit(options.sync);
  });
}

void Output::abandon() noexcept {
  if (replacement_ && replacement_->process == system::process_id())
    (void)replacement_->folder.remove(replacement_->temporary);
  replacement_.reset();
  handle_ = system::Handle();
}

}  // namespace hurray::io
