// The command as people run it: real processes, files and pipes.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "hurray/io/file.hpp"
#include "hurray/io/file_writer.hpp"
#include "hurray/io/stream.hpp"
#include "running.hpp"
#include "safetensors_files.hpp"

namespace hurray::cli {
namespace {

using namespace formats;  // safetensors files made by hand

std::span<const std::byte> stored(const io::File& file, std::string_view name,
                                  std::vector<Tensor>& keep) {
  const auto i = file.find(name);
  EXPECT_TRUE(i) << name;
  if (!i) return {};
  auto tensor = file.tensor(*i);
  EXPECT_TRUE(tensor);
  if (!tensor) return {};
  keep.push_back(*std::move(tensor));
  return keep.back().buffer(0).bytes();
}

const std::string small =
    safetensors(R"({"__metadata__":{"format":"pt"},)"
                R"("w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
                R"("none":{"dtype":"F16","shape":[0,7],"data_offsets":[24,24]},)"
                R"("mask":{"dtype":"BOOL","shape":[10],"data_offsets":[24,34]}})",
                std::string_view("abcdefghijklmnopqrstuvwx\0\1\2\0\0\0\xff\0\1\1", 34));

// --- usage ---

TEST_F(Command, VersionAndHelp) {
  const Ran version = run({"--version"});
  EXPECT_EQ(version.code, 0);
  EXPECT_EQ(version.out, "hurray " HURRAY_VERSION_TEXT "\n");
  for (const std::vector<std::string>& words : {std::vector<std::string>{"--help"},
                                                {"inspect", "--help"},
                                                {"convert", "--help"},
                                                {"verify", "--help"},
                                                {"ls", "--help"},
                                                {"kv", "--help"},
                                                {"kv", "get", "--help"},
                                                {"kv", "set", "--help"},
                                                {"kv", "rm", "--help"},
                                                {"cat", "--help"},
                                                {"extract", "--help"},
                                                {"diff", "--help"},
                                                {"stats", "--help"}}) {
    const Ran help = run(words);
    EXPECT_EQ(help.code, 0);
    EXPECT_NE(help.out.find("Example"), std::string::npos) << help.out;
    EXPECT_EQ(help.err, "");
  }
}

TEST_F(Command, WrongUsageIsExitTwo) {
  const auto says = [&](std::vector<std::string> words, const std::string& line) {
    const Ran ran = run(std::move(words));
    EXPECT_EQ(ran.code, 2);
    EXPECT_EQ(ran.out, "");
    EXPECT_EQ(ran.err, line + "\n");
  };
  says({}, "hurray: A subcommand is required; see hurray --help");
  says({"foo", "x"}, "hurray: there is no command foo; see hurray --help");
  says({"inspect"}, "hurray: FILE is required; see hurray inspect --help");
  says({"convert", "a"}, "hurray: TARGET is required; see hurray convert --help");
  EXPECT_EQ(run({"inspect", "--no-such", "x"}).code, 2);
  EXPECT_EQ(run({"convert", "a", "b", "c"}).code, 2);
  EXPECT_EQ(run({"inspect", "a", "b", "c\x1b[31m"}).err.find('\x1b'), std::string::npos);
}

// --- verify, and files made anew ---

TEST_F(Command, VerifyFindsAFlippedBitAndConvertMakesNewSumsOfWhatIsSound) {
  put(at("m.safetensors"), small);
  ASSERT_EQ(run({"convert", "m.safetensors", "m.hrry"}).code, 0);
  const Ran sound = run({"verify", "m.hrry"});
  EXPECT_EQ(sound.code, 0) << sound.err;
  EXPECT_NE(sound.out.find("m.hrry: sound; "), std::string::npos) << sound.out;
  EXPECT_NE(sound.out.find("checksums: valid"), std::string::npos) << sound.out;

  ASSERT_EQ(run({"convert", "m.hrry", "again.hrry"}).code, 0);
  const std::string bytes = contents(at("m.hrry"));
  EXPECT_EQ(contents(at("again.hrry")), bytes);
  ASSERT_EQ(run({"convert", "--no-checksums", "m.hrry", "bare.hrry"}).code, 0);
  const Ran bare = run({"verify", "bare.hrry"});
  EXPECT_EQ(bare.code, 0);
  EXPECT_NE(bare.out.find("the rules alone"), std::string::npos) << bare.out;
  ASSERT_EQ(run({"convert", "bare.hrry", "summed.hrry"}).code, 0);
  EXPECT_EQ(contents(at("summed.hrry")), bytes);

  const auto file = io::File::open(at("m.hrry"));
  ASSERT_TRUE(file);
  std::string damaged = bytes;
  const auto w = file->find("w");
  ASSERT_TRUE(w);
  damaged[static_cast<std::size_t>(file->entry(*w).data_offset) + 5] ^= 4;
  put(at("damaged.hrry"), damaged);
  const Ran found = run({"verify", "damaged.hrry"});
  EXPECT_EQ(found.code, 1);
  EXPECT_NE(found.err.find("tensor \"w\""), std::string::npos) << found.err;
  EXPECT_NE(found.err.find("damaged.hrry: 1 finding\n"), std::string::npos) << found.err;
  const Ran json = run({"verify", "--json", "damaged.hrry"});
  EXPECT_EQ(json.code, 1);
  EXPECT_NE(json.out.find("\"part\":\"data\""), std::string::npos) << json.out;
  EXPECT_NE(json.out.find("\"sound\":false"), std::string::npos) << json.out;
  EXPECT_EQ(run({"convert", "damaged.hrry", "laundered.hrry"}).code, 1);
  EXPECT_FALSE(std::filesystem::exists(at("laundered.hrry")));
  put(at("cut.hrry"), bytes.substr(0, bytes.size() - 1));
  EXPECT_EQ(run({"verify", "cut.hrry"}).code, 1);
  EXPECT_EQ(run({"verify", "nothing.hrry"}).code, 3);
}

// --- convert and inspect ---

TEST_F(Command, ConvertThenList) {
  put(at("m.safetensors"), small);
  const Ran converted = run({"convert", "m.safetensors", "m.hrry"});
  EXPECT_EQ(converted.code, 0);
  EXPECT_EQ(converted.out, "m.hrry: 3 tensors, 26 bytes (from m.safetensors)\n");
  EXPECT_EQ(converted.err, "");
  EXPECT_EQ(names(), (std::vector<std::string>{"m.hrry", "m.safetensors"}));

  const Ran listed = run({"inspect", "m.hrry"});
  EXPECT_EQ(listed.code, 0);
  EXPECT_EQ(listed.err, "");
  EXPECT_EQ(listed.out, R"(m.hrry: Hurray file 1.0, 12551 bytes (12.3 KiB)
  tensors    3, first at 64, buffers on multiples of 4096, count in the header 3
  flags      HAS_KV_METADATA, HAS_INDEX_CRC32C
  index      119 bytes at 12392, CRC-32C d3861db5
  key-values 95 bytes at 12296
  checksums  present

KEY     TYPE    VALUE
format  string  "pt"

NAME  DTYPE    SHAPE   LAYOUT     BYTES  OFFSET
w     float32  [2, 3]  row_major     24    4096
none  float16  [0, 7]  row_major      0    8192
mask  bool     [10]    row_major      2   12288

3 tensors, 26 bytes of data
)");

  const auto file = io::File::open(at("m.hrry").string());
  ASSERT_TRUE(file);
  std::vector<Tensor> keep;
  EXPECT_EQ(text_of(stored(*file, "w", keep)), "abcdefghijklmnopqrstuvwx");
  EXPECT_EQ(text_of(stored(*file, "mask", keep)), "\x46\x03");
  EXPECT_EQ(file->kv(), (io::KeyValues{{"format", "pt"}}));
  EXPECT_TRUE(file->has_checksums());
  EXPECT_EQ(file->header().tensor_count_hint, 3u);
  const auto none = file->descriptor(*file->find("none"));
  ASSERT_TRUE(none);
  EXPECT_EQ(none->buffers[0].alignment, 1u);
  EXPECT_EQ(file->descriptor(0)->buffers[0].alignment, 64u);
}

TEST_F(Command, ConvertTwiceGivesTheSameBytes) {
  put(at("m.safetensors"), small);
  EXPECT_EQ(run({"convert", "m.safetensors", "a.hrry"}).code, 0);
  EXPECT_EQ(run({"convert", "--no-sync", "m.safetensors", "b.hrry"}).code, 0);
  EXPECT_EQ(contents(at("a.hrry")), contents(at("b.hrry")));
  const Ran piped = run({"convert", "m.safetensors", "/dev/stdout"});
  EXPECT_EQ(piped.code, 0);
  EXPECT_EQ(piped.out, contents(at("a.hrry")));
}

TEST_F(Command, ConvertWithoutChecksums) {
  put(at("m.safetensors"), small);
  EXPECT_EQ(run({"convert", "--no-checksums", "m.safetensors", "m.hrry"}).code, 0);
  const auto file = io::File::open(at("m.hrry").string());
  ASSERT_TRUE(file);
  EXPECT_FALSE(file->has_checksums());
  EXPECT_NE(run({"inspect", "m.hrry"}).out.find("checksums  none"), std::string::npos);
}

TEST_F(Command, JsonOfAFile) {
  put(at("m.safetensors"), small);
  const Ran converted = run({"convert", "--json", "m.safetensors", "m.hrry"});
  EXPECT_EQ(converted.out,
            R"({"version":1,"kind":"convert","source":"m.safetensors","target":"m.hrry",)"
            R"("tensors":3,"bytes":26})"
            "\n");
  EXPECT_EQ(
      run({"inspect", "--json", "m.hrry"}).out,
      R"({"version":1,"kind":"file","path":"m.hrry","format":"hrry","size":12551,)"
      R"("header":{"container_version":"1.0","file_flags":["HAS_KV_METADATA","HAS_INDEX_CRC32C"],)"
      R"("data_buffer_alignment":4096,"first_descriptor_offset":64,"tensor_count_hint":3},)"
      R"("trailer":{"index_offset":12392,"index_length":119,"kv_offset":12296,"kv_length":95,)"
      R"("index_crc32c":3548782005},"checksums":true,)"
      R"("kv":[{"key":"format","type":"string","array":false,"value":"pt"}],"tensors":[)"
      R"({"name":"w","data_offset":4096,"data_length":24,"descriptor_offset":64,)"
      R"("descriptor_length":61,"dtype":"float32","shape":[2,3],"layout":"row_major",)"
      R"("byte_offset":0,"bytes":24},)"
      R"({"name":"none","data_offset":8192,"data_length":0,"descriptor_offset":4120,)"
      R"("descriptor_length":61,"dtype":"float16","shape":[0,7],"layout":"row_major",)"
      R"("byte_offset":0,"bytes":0},)"
      R"({"name":"mask","data_offset":12288,"data_length":2,"descriptor_offset":8192,)"
      R"("descriptor_length":53,"dtype":"bool","shape":[10],"layout":"row_major",)"
      R"("byte_offset":0,"bytes":2}],"bytes":26})"
      "\n");
}

TEST_F(Command, InspectATensor) {
  put(at("m.safetensors"), small);
  ASSERT_EQ(run({"convert", "m.safetensors", "m.hrry"}).code, 0);
  const Ran shown = run({"inspect", "m.hrry", "mask"});
  EXPECT_EQ(shown.code, 0);
  EXPECT_EQ(shown.out, R"(m.hrry: tensor "mask": descriptor of 53 bytes at 8192

OFFSET  SIZE  BYTES                    FIELD                    VALUE
  8192     4  48 52 52 59              magic                    "HRRY"
  8196     1  01                       version_major            1
  8197     1  00                       version_minor            0
  8198     4  35 00 00 00              descriptor_length        53
  8202     4  00 00 00 00              flags                    0
  8206     1  20                       type_tag                 bool (0x20)
  8207     1  01                       layout_tag               row_major (0x01)
  8208     4  01 00 00 00              rank                     1
  8212     8  0a 00 00 00 00 00 00 00  shape[0]                 10
  8220     8  00 00 00 00 00 00 00 00  byte_offset              0
  8228     1  01                       buffer_count             1
  8229     8  02 00 00 00 00 00 00 00  buffers[0].byte_size     2
  8237     4  40 00 00 00              buffers[0].alignment     64
  8241     1  00                       buffers[0].device_tag    cpu (0x00)
  8242     1  00                       buffers[0].sync_mode     producer_synced (0x00)
  8243     1  00                       buffers[0].memory_class  standard (0x00)
  8244     1  00                       buffers[0].reserved      0

BUFFER  OFFSET  BYTES  ALIGNMENT  DEVICE  MEMORY    SYNC
data     12288      2         64  cpu     standard  producer_synced
)");
  const Ran missing = run({"inspect", "m.hrry", "Mask"});
  EXPECT_EQ(missing.code, 1);
  EXPECT_EQ(missing.err,
            "hurray: m.hrry: tensor \"Mask\": the file has no tensor of this name (not found); "
            "`hurray inspect m.hrry` lists the names\n");
  const Ran json = run({"inspect", "m.hrry", "mask", "--json"});
  EXPECT_TRUE(
      json.out.starts_with(R"({"version":1,"kind":"tensor","path":"m.hrry","name":"mask",)"));
  EXPECT_NE(json.out.find(R"({"offset":8212,"size":8,"hex":"0a 00 00 00 00 00 00 00",)"
                          R"("name":"shape[0]","value":"10"})"),
            std::string::npos);
}

TEST_F(Command, TypesKeepTheirBytes) {
  // Per type: four elements, or what makes whole bytes; the bytes go through unchanged.
  const std::string data = "\x80\x01\xfe\x7f\x3c\x00\xff\x11 more than that: 32 bytes.";
  for (const auto& [name, dtype, size] :
       std::vector<std::tuple<std::string, DType, std::size_t>>{{"F8_E4M3", DType::float8_e4m3, 4},
                                                                {"F8_E5M2", DType::float8_e5m2, 4},
                                                                {"F8_E8M0", DType::float8_e8m0, 4},
                                                                {"F4", DType::float4_e2m1, 2},
                                                                {"F6_E2M3", DType::float6_e2m3, 3},
                                                                {"F6_E3M2", DType::float6_e3m2, 3},
                                                                {"BF16", DType::bfloat16, 8},
                                                                {"C64", DType::complex64, 32},
                                                                {"U64", DType::uint64, 32}}) {
    SCOPED_TRACE(name);
    std::string bytes = data.substr(0, size);
    bytes.resize(size, '\x55');
    put(at("m.safetensors"), safetensors(tensor_a(name, "[2,2]", size), bytes));
    const Ran ran = run({"convert", "m.safetensors", "m.hrry", "--no-sync"});
    ASSERT_EQ(ran.code, 0) << ran.err;
    const auto file = io::File::open(at("m.hrry").string());
    ASSERT_TRUE(file);
    std::vector<Tensor> keep;
    EXPECT_EQ(text_of(stored(*file, "a", keep)), bytes);
    EXPECT_EQ(keep.back().descriptor().dtype, dtype);
    EXPECT_EQ(keep.back().descriptor().shape, (Shape{2, 2}));
  }
}

TEST_F(Command, ManyTruthValues) {
  // More than one piece of the scratch on either side, and a last byte with bits to spare.
  const std::size_t count = (std::size_t{9} << 20) + 3;
  std::string data(count, '\0');
  std::string packed((count + 7) / 8, '\0');
  for (std::size_t i = 0; i < count; ++i)
    if (i % 3 == 0 || i % 7 == 2) {
      data[i] = static_cast<char>(i % 255 + 1);
      packed[i / 8] = static_cast<char>(packed[i / 8] | (1 << (i % 8)));
    }
  put(at("m.safetensors"), safetensors(tensor_a("BOOL", "[3145729,3]", count), data));
  const Ran ran = run({"convert", "m.safetensors", "m.hrry", "--no-sync"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const auto file = io::File::open(at("m.hrry").string());
  ASSERT_TRUE(file);
  std::vector<Tensor> keep;
  EXPECT_TRUE(text_of(stored(*file, "a", keep)) == packed);
}

TEST_F(Command, MemoryDoesNotGrowWithTheModel) {
  constexpr std::uint64_t size = 512u << 20;
  put(at("m.safetensors"), safetensors(tensor_a("U8", "[536870912]", size)));
  fs::resize_file(at("m.safetensors"), fs::file_size(at("m.safetensors")) + size);
  const long before = run({"--version"}).peak_kib;
  const Ran ran = run({"convert", "m.safetensors", "/dev/null"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_LT(ran.peak_kib - before, 32 << 10);
}

// --- refusals ---

TEST_F(Command, BadSourcesLeaveTheTargetAlone) {
  put(at("old.hrry"), "old");
  const auto refused = [&](std::string_view source, const std::string& line) {
    put(at("m.safetensors"), source);
    const Ran ran = run({"convert", "m.safetensors", "old.hrry"});
    EXPECT_EQ(ran.code, 1);
    EXPECT_EQ(ran.out, "");
    EXPECT_EQ(ran.err, "hurray: m.safetensors: " + line + "\n");
    EXPECT_EQ(contents(at("old.hrry")), "old");
    EXPECT_EQ(run({"convert", "m.safetensors", "new.hrry"}).code, 1);
    EXPECT_EQ(names(), (std::vector<std::string>{"m.safetensors", "old.hrry"}));
  };
  refused(safetensors(tensor_a("I4", "[8]", 4), "0123"),
          "tensor \"a\": dtype: an element type that has no counterpart of the same encoding "
          "(unsupported at byte 22 of the file); \"I4\" cannot be converted");
  refused(small.substr(0, small.size() - 1),
          "data: expected 34 bytes, found 33 (truncated at byte 249 of the file); an unfinished "
          "download or copy?");
  refused(small + "x",
          "data: expected 34 bytes, where the last tensor ends, found 35 (length mismatch "
          "at byte 250 of the file); the bytes after it belong to no tensor");
  refused("",
          "magic: this is no .hrry file (invalid magic at byte 0 of the "
          "file); it is an empty file; unfinished download or "
          "write?");
  refused("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5000000000\n",
          "magic: this is no .hrry file (invalid magic at byte 0 of the "
          "file); it is a Git LFS pointer to 5.0 GB; run git lfs "
          "pull");
  refused("<!DOCTYPE html><html>",
          "magic: this is no .hrry file (invalid magic at byte 0 of the "
          "file); it is an HTML page, "
          "perhaps an error or a login in place of the file; download it again");
  refused("PK\3\4",
          "magic: this is no .hrry file (invalid magic at byte 0 of the "
          "file); it is a zip archive; unpack it first");
}

TEST_F(Command, WhatTheFormatCannotHoldIsRefusedFirst) {
  put(at("old.hrry"), "old");
  const std::string tensor = R"("w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]})";
  for (const auto& [header, part] : std::vector<std::pair<std::string, std::string>>{
           {R"({"__metadata__":{"":"x"},)" + tensor + "}", "kv[0].key"},
           {R"({"__metadata__":{"hurray.crc32c":"x"},)" + tensor + "}", "hurray.crc32c"},
           {R"({"":{"dtype":"U8","shape":[0],"data_offsets":[1,1]},)" + tensor + "}", "name: "},
           {"{\"" + std::string(65536, 'n') +
                R"(":{"dtype":"U8","shape":[0],"data_offsets":[1,1]},)" + tensor + "}",
            "65535"}}) {
    put(at("m.safetensors"), safetensors(header, "x"));
    const Ran ran = run({"convert", "m.safetensors", "old.hrry"});
    EXPECT_EQ(ran.code, 1);
    EXPECT_TRUE(ran.err.starts_with("hurray: m.safetensors: ")) << ran.err;
    EXPECT_NE(ran.err.find(part), std::string::npos) << ran.err;
    EXPECT_EQ(contents(at("old.hrry")), "old");
    EXPECT_EQ(names(), (std::vector<std::string>{"m.safetensors", "old.hrry"}));
  }
}

TEST_F(Command, FullDiskLeavesTheTargetAlone) {
  put(at("old.hrry"), "old");
  put(at("m.safetensors"),
      safetensors(tensor_a("U8", "[100000]", 100000), std::string(100000, 'x')));
  const auto small_files_only = [] {
    const rlimit limit{65536, 65536};
    std::signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(125);
  };
  const Ran ran = run({"convert", "m.safetensors", "old.hrry"}, small_files_only);
  EXPECT_EQ(ran.code, 3);
  EXPECT_NE(ran.err.find("old.hrry: "), std::string::npos) << ran.err;
  EXPECT_NE(ran.err.find("File too large"), std::string::npos) << ran.err;
  EXPECT_EQ(contents(at("old.hrry")), "old");
  EXPECT_EQ(names(), (std::vector<std::string>{"m.safetensors", "old.hrry"}));
  EXPECT_EQ(run({"convert", "m.safetensors", "old.hrry"}).code, 0);
  EXPECT_TRUE(io::File::open(at("old.hrry").string()));
}

TEST_F(Command, SourceAndTargetAreOneFile) {
  put(at("m"), small);
  EXPECT_EQ(run({"convert", "m", "m"}).code, 0);
  const auto file = io::File::open(at("m").string());
  ASSERT_TRUE(file);
  std::vector<Tensor> keep;
  EXPECT_EQ(text_of(stored(*file, "w", keep)), "abcdefghijklmnopqrstuvwx");
}

TEST_F(Command, SystemErrorsAreExitThree) {
  put(at("m.safetensors"), small);
  const Ran missing = run({"inspect", "none.hrry"});
  EXPECT_EQ(missing.code, 3);
  EXPECT_EQ(missing.err, "hurray: none.hrry: No such file or directory\n");
  EXPECT_EQ(run({"convert", "none.safetensors", "x.hrry"}).code, 3);
  EXPECT_EQ(run({"convert", "m.safetensors", "no/folder.hrry"}).code, 3);
  EXPECT_EQ(run({"convert", "m.safetensors", "/dev/full"}).code, 3);
  ASSERT_EQ(run({"convert", "m.safetensors", "m.hrry"}).code, 0);
  for (const std::string option : {"--version", "--help"})
    EXPECT_EQ(run({option}, {}, "/dev/full").code, 3);
  const Ran full = run({"inspect", "m.hrry"}, {}, "/dev/full");
  EXPECT_EQ(full.code, 3);
  EXPECT_EQ(full.err, "hurray: standard output: No space left on device\n");
}

TEST_F(Command, FoldersAndPipesAreNamed) {
  ASSERT_EQ(mkfifo(at("pipe").c_str(), 0600), 0);
  const Ran pipe = run({"inspect", "pipe"});
  EXPECT_EQ(pipe.code, 1);
  EXPECT_EQ(pipe.err,
            "hurray: pipe: not a regular file (invalid value); save what it delivers to a "
            "file first\n");
  const Ran folder = run({"convert", ".", "x.hrry"});
  EXPECT_EQ(folder.code, 3);
  EXPECT_EQ(folder.err,
            "hurray: .: open: Is a directory; the folder holds no .hrry file and no index of such "
            "files\n");
}

TEST_F(Command, AClosedPipeIsQuiet) {
  put(at("m.safetensors"), small);
  ASSERT_EQ(run({"convert", "m.safetensors", "m.hrry"}).code, 0);
  for (const bool ignored : {false, true}) {
    const Ran ran = run({"inspect", "m.hrry"}, [ignored] {
      std::array<int, 2> ends{};
      if (pipe(ends.data()) != 0 || dup2(ends[1], 1) < 0) _exit(125);
      close(ends[0]);
      close(ends[1]);
      if (ignored) std::signal(SIGPIPE, SIG_IGN);
    });
    EXPECT_EQ(ran.code, ignored ? 3 : -SIGPIPE);
    EXPECT_EQ(ran.err, "");
  }
}

TEST_F(Command, ASignalEndsAConversionWithoutATrace) {
  constexpr std::uint64_t size = std::uint64_t{8} << 30;
  put(at("old.hrry"), "old");
  put(at("m.safetensors"), safetensors(tensor_a("U8", "[8589934592]", size)));
  fs::resize_file(at("m.safetensors"), fs::file_size(at("m.safetensors")) + size);
  if (fs::space(folder_).available < 2 * size) GTEST_SKIP() << "needs free space";
  const pid_t command = start({"convert", "m.safetensors", "old.hrry"});
  while (names().size() < 5) usleep(1000);  // the temporary is there
  usleep(50'000);
  kill(command, SIGTERM);
  const Ran ended = wait(command);
  EXPECT_EQ(ended.code, -SIGTERM) << ended.err;
  EXPECT_EQ(contents(at("old.hrry")), "old");
  EXPECT_EQ(names(), (std::vector<std::string>{"m.safetensors", "old.hrry"}));
}

// --- what else can be inspected ---

TEST_F(Command, NamesAndValuesAreShownHarmlessly) {
  const std::string name = "a\x1b[2J\n\xe2\x80\xae\\b";
  Descriptor descriptor;
  descriptor.dtype = DType::uint8;
  descriptor.shape = {1};
  descriptor.buffers = {BufferHandle{.byte_size = 1, .alignment = 64}};
  const std::byte one{1};
  io::WriteOptions options;
  options.sync = false;
  auto writer = io::FileWriter::create(at("m.hrry").string(), options);
  ASSERT_TRUE(writer);
  const io::BufferSource source(std::span(&one, 1));
  ASSERT_TRUE(writer->write(name, descriptor, {&source, 1}));
  ASSERT_TRUE(writer->finish({{"k\x1b", "v\x07"},
                              {"n", std::int64_t{-7}},
                              {"u", std::uint64_t{18446744073709551615u}},
                              {"f", -0.5},
                              {"t", true},
                              {"b", io::Bytes{std::byte{0}, std::byte{255}}},
                              {"l", std::vector<bool>{true, false}},
                              {"s", std::vector<std::string>{"x", "\xe9\xbe\x8d"}},
                              {"e", std::vector<double>{}}}));
  const Ran text = run({"inspect", "m.hrry"});
  EXPECT_EQ(text.code, 0);
  EXPECT_EQ(text.out.substr(text.out.find("\nKEY")), R"(
KEY    TYPE       VALUE
k\x1b  string     "v\x07"
n      int64      -7
u      uint64     18446744073709551615
f      float64    -0.5
t      bool       true
b      bytes      <2 bytes> 00 ff
l      bool[]     [true, false]
s      string[]   ["x", "龍"]
e      float64[]  []

NAME                 DTYPE  SHAPE  LAYOUT     BYTES  OFFSET
a\x1b[2J\n\u202e\\b  uint8  [1]    row_major      1    4096

1 tensor, 1 byte of data
)");
  const Ran json = run({"inspect", "m.hrry", "--json"});
  EXPECT_NE(json.out.find(R"({"name":"a\u001b[2J\n\u202e\\b",)"), std::string::npos) << json.out;
  EXPECT_NE(json.out.find(R"({"key":"u","type":"uint64","array":false,)"
                          R"("value":18446744073709551615},)"
                          R"({"key":"f","type":"float64","array":false,"value":-0.5},)"),
            std::string::npos);
  EXPECT_EQ(run({"inspect", "m.hrry", name}).code, 0);
}

TEST_F(Command, BareDescriptorsAndStreams) {
  Descriptor descriptor;
  descriptor.dtype = DType::int16;
  descriptor.shape = {3};
  descriptor.buffers = {BufferHandle{.byte_size = 6, .alignment = 64}};
  const auto encoded = encode(descriptor);
  ASSERT_TRUE(encoded);
  put(at("d"), text_of(*encoded));
  const Ran one = run({"inspect", "d"});
  EXPECT_EQ(one.code, 0);
  EXPECT_TRUE(one.out.starts_with("d: descriptor of 53 bytes\n\nOFFSET")) << one.out;
  EXPECT_NE(
      one.out.find("    14     1  12                       type_tag                 int16 (0x12)"),
      std::string::npos);

  put(at("cut"), text_of(*encoded).substr(0, 40));
  const Ran cut = run({"inspect", "cut"});
  EXPECT_EQ(cut.code, 1);
  EXPECT_EQ(cut.err,
            "hurray: cut: descriptor_length: expected 53 bytes, found 40 (truncated at byte 40 "
            "of the descriptor); pass all of the bytes\n");

  auto stream = io::StreamWriter::create(at("s").string());
  ASSERT_TRUE(stream);
  const io::BufferSource source(bytes_of("abcdef"));
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(stream->write(descriptor, {&source, 1}));
  ASSERT_TRUE(stream->finish());
  const Ran listed = run({"inspect", "s"});
  EXPECT_EQ(listed.code, 0);
  EXPECT_EQ(listed.out, R"(s: Hurray stream, 118 bytes

FRAME  DTYPE  SHAPE  LAYOUT     BYTES  OFFSET
    0  int16  [3]    row_major      6      53
    1  int16  [3]    row_major      6     112

2 frames, 12 bytes of data
)");
  const Ran second = run({"inspect", "s", "1"});
  EXPECT_EQ(second.code, 0);
  EXPECT_TRUE(second.out.starts_with("s: frame 1: descriptor of 53 bytes at 59\n")) << second.out;
  EXPECT_NE(second.out.find("data       112      6         64  cpu"), std::string::npos)
      << second.out;
  EXPECT_EQ(run({"inspect", "s", "2"}).code, 1);
  EXPECT_EQ(run({"inspect", "s", "x"}).code, 1);

  fs::resize_file(at("s"), 117);
  const Ran torn = run({"inspect", "s", "--json"});
  EXPECT_EQ(torn.code, 1);
  EXPECT_EQ(torn.err,
            "hurray: s: buffers: expected 6 bytes, found 5 (truncated at byte 112 of the "
            "stream); in frame 1, which begins at byte 59\n");
  EXPECT_NE(torn.out.find(R"("bytes":6,"error":{"code":"truncated",)"), std::string::npos)
      << torn.out;
}

TEST_F(Command, BrokenTensorsStandInTheList) {
  put(at("m.safetensors"), small);
  ASSERT_EQ(run({"convert", "m.safetensors", "m.hrry"}).code, 0);
  std::string changed = contents(at("m.hrry"));
  changed[64 + 14] = 0x00;  // type_tag of "w": never valid
  put(at("m.hrry"), changed);
  const Ran broken = run({"inspect", "m.hrry", "--json"});
  EXPECT_EQ(broken.code, 1);
  EXPECT_EQ(broken.err, "hurray: m.hrry: 1 tensor cannot be read; see the list\n");
  EXPECT_NE(broken.out.find(R"("descriptor_length":61,"error":{"code":"invalid tag",)"),
            std::string::npos)
      << broken.out;
  EXPECT_NE(broken.out.find(R"("name":"mask")"), std::string::npos);
  const Ran listed = run({"inspect", "m.hrry"});
  EXPECT_EQ(listed.code, 1);
  EXPECT_NE(listed.out.find("w     ?        ?       ?             24    4096  broken: type_tag: "),
            std::string::npos)
      << listed.out;
  EXPECT_EQ(run({"inspect", "m.hrry", "w"}).code, 1);
}

TEST_F(Command, FilesOfOtherFormatsAreSeenAsTheyWouldBeConverted) {
  put(at("m.safetensors"), small);
  const Ran shown = run({"inspect", "m.safetensors"});
  EXPECT_EQ(shown.code, 0) << shown.err;
  EXPECT_TRUE(shown.out.starts_with("m.safetensors: safetensors file, seen as Hurray file 1.0, "))
      << shown.out;
  EXPECT_EQ(run({"convert", "--no-checksums", "m.safetensors", "m.hrry"}).code, 0);
  for (const std::string name : {"w", "none", "mask"}) {
    const std::string one = run({"inspect", "m.safetensors", name}).out;
    const std::string other = run({"inspect", "m.hrry", name}).out;
    EXPECT_EQ(one.substr(one.find('\n')), other.substr(other.find('\n')));
  }
  EXPECT_EQ(run({"verify", "m.safetensors"}).code, 0);
  EXPECT_EQ(run({"diff", "m.safetensors", "m.hrry"}).code, 0);
  EXPECT_EQ(run({"convert", "m.hrry", "again.safetensors"}).code, 0);
  EXPECT_EQ(run({"diff", "m.safetensors", "again.safetensors"}).code, 0);
  EXPECT_EQ(run({"ls", "m.safetensors"}).out.substr(0, 40),
            run({"ls", "m.hrry"}).out.substr(0, 40));
}

TEST_F(Command, FoldersIndexesAndTheirPathsAreSets) {
  put(at("model-00001-of-00002.safetensors"), small);
  put(at("model-00002-of-00002.safetensors"), safetensors(tensor_a("U8", "[3]", 3), "abc"));
  put(at("model.safetensors.index.json"),
      R"({"metadata":{"total_size":1},"weight_map":{"w":"model-00001-of-00002.safetensors",)"
      R"("none":"model-00001-of-00002.safetensors","mask":"model-00001-of-00002.safetensors",)"
      R"("a":"model-00002-of-00002.safetensors"}})");
  for (const std::string source : {".", "model.safetensors.index.json", "model.safetensors"}) {
    const Ran listed = run({"ls", source});
    EXPECT_EQ(listed.code, 0) << listed.err;
    EXPECT_NE(listed.out.find("4 tensors, "), std::string::npos) << listed.out;
    EXPECT_NE(listed.out.find("2 files, "), std::string::npos) << listed.out;
    EXPECT_EQ(run({"convert", source, "/dev/null"}).code, 0);
  }
  EXPECT_EQ(run({"cat", ".", "a"}).out, "[97 98 99]\n");
  fs::remove(at("model-00002-of-00002.safetensors"));
  EXPECT_NE(run({"ls", "."}).err.find("1 of 2 shards missing: model-00002-of-00002.safetensors"),
            std::string::npos);
}

TEST_F(Command, OtherFilesAreNamed) {
  put(at("m.zip"), "PK\3\4 and more");
  const Ran ran = run({"inspect", "m.zip", "--json"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_NE(ran.err.find("a zip archive; unpack it first"), std::string::npos) << ran.err;
  EXPECT_TRUE(ran.out.starts_with(R"({"version":1,"kind":"error","code":"invalid magic",)"))
      << ran.out;
}

}  // namespace
}  // namespace hurray::cli
