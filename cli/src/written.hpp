#pragma once

#include <string>

#include "hurray/formats/convert.hpp"

/// New files made of tensors of others.
namespace hurray::cli {

/// `formats::convert`, which a signal ends and whose progress whoever watches sees.
io::Result<formats::Converted> write_file(const io::FileSet& set, const std::string& target,
                                          formats::ConvertOptions options);

}  // namespace hurray::cli
