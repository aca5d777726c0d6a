// Tensors for another process, without a copy: sealed memory that holds a file. Here the other
// process is a child, which has the descriptor; over a Unix socket it would be sent with
// SCM_RIGHTS.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "hurray/io/file.hpp"
#include "hurray/io/share.hpp"

using namespace hurray;

int main() {
  auto memory = Buffer::allocate(8 * sizeof(float), /*zeroed=*/true);
  if (!memory) return 1;
  for (int i = 0; i < 8; ++i) {
    const float value = 0.5f * static_cast<float>(i);
    std::memcpy(memory->data() + sizeof value * static_cast<std::size_t>(i), &value, sizeof value);
  }
  Descriptor descriptor;
  descriptor.dtype = DType::float32;
  descriptor.shape = Shape{2, 4};
  const auto weights = bind(descriptor, {*memory});
  if (!weights) return 1;

  const auto image = io::SharedImage::create(
      "weights", [&](io::FileWriter& writer) { return writer.write_item("w", Item{*weights}); });
  if (!image) {
    std::fprintf(stderr, "%s\n", to_string(image.error()).c_str());
    return image.error().code == Errc::unsupported ? 0 : 1;
  }

  const pid_t child = ::fork();
  if (child == 0) {
    const auto file = io::File::over(image->descriptor());
    const auto tensor = file ? file->tensor("w") : io::Result<Tensor>(file.error());
    if (!tensor) ::_exit(1);
    float last = 0;
    std::memcpy(&last, tensor->buffer(0).data() + 7 * sizeof last, sizeof last);
    std::printf("the last of %zu bytes shared is %g\n",
                static_cast<std::size_t>(tensor->buffer(0).size()), double{last});
    std::fflush(stdout);
    ::_exit(last == 3.5f && tensor->buffer(0).readonly() ? 0 : 1);
  }
  int status = 1;
  ::waitpid(child, &status, 0);
  return status == 0 ? 0 : 1;
}
