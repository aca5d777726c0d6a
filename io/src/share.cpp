#include "hurray/io/share.hpp"

#include <cerrno>
#include <utility>

#include "system.hpp"

namespace hurray::io {

struct SharedImage::State {
  system::Handle memory;
};

SharedImage::SharedImage(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
SharedImage::SharedImage(SharedImage&&) noexcept = default;
SharedImage& SharedImage::operator=(SharedImage&&) noexcept = default;
SharedImage::~SharedImage() = default;

Result<SharedImage> SharedImage::create(const std::string& name, const Write& write,
                                        const KeyValues& kv, const WriteOptions& options) {
  return contain(Origin::file, [&]() -> Result<SharedImage> {
    auto memory = system::sealable_memory(name);
    if (!memory && memory.error().number == ENOSYS)
      return Error({.code = Errc::unsupported,
                    .origin = Origin::file,
                    .what = "this system has no memory that can be sealed"},
                   {}, {}, "save a file and let the other process open it");
    if (!memory) return system::to_error(memory.error(), Origin::file, {});
    WriteOptions effective = options;
    effective.sync = false;
    auto writer = FileWriter::over(memory->number(), effective);
    if (!writer) return std::move(writer).error();
    if (auto written = write(*writer); !written) return std::move(written).error();
    if (auto finished = writer->finish(kv); !finished) return std::move(finished).error();
    if (auto sealed = system::seal(memory->number()); !sealed)
      return system::to_error(sealed.error(), Origin::file, {});
    return SharedImage(std::make_unique<State>(State{*std::move(memory)}));
  });
}

int SharedImage::descriptor() const noexcept { return state_->memory.number(); }

int SharedImage::release() noexcept {
  const int descriptor = state_->memory.number();
  state_->memory.release();
  return descriptor;
}

}  // namespace hurray::io
