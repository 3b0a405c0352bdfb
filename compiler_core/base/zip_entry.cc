#include "compiler_core/base/zip_entry.h"

#include <libdeflate.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/status.h"

namespace npuc {
namespace {

absl::Status Inflate(absl::string_view data, std::string& out) {
  const std::unique_ptr<libdeflate_decompressor, decltype(&libdeflate_free_decompressor)>
      decompressor(libdeflate_alloc_decompressor(), &libdeflate_free_decompressor);
  if (decompressor == nullptr) {
    return absl::InvalidArgumentError("cannot be inflated: no memory");
  }
  size_t read = 0;
  size_t written = 0;
  switch (libdeflate_deflate_decompress_ex(decompressor.get(), data.data(), data.size(), out.data(),
                                           out.size(), &read, &written)) {
    case LIBDEFLATE_SUCCESS:
      if (written == out.size()) return absl::OkStatus();
      return absl::InvalidArgumentError(
          absl::StrCat("claims ", out.size(), " bytes, but has ", written, " before it ends"));
    case LIBDEFLATE_INSUFFICIENT_SPACE:
      return absl::InvalidArgumentError(
          absl::StrCat("claims ", out.size(), " bytes, but has more"));
    default:
      return absl::InvalidArgumentError("is damaged: its data cannot be inflated");
  }
}

}  // namespace

absl::StatusOr<absl::string_view> ReadZipEntry(absl::string_view file, const ZipRecord& record,
                                               std::string& inflated) {
  absl::string_view data = file.substr(static_cast<size_t>(record.data_offset),
                                       static_cast<size_t>(record.compressed_size));
  if (record.method == kZipDeflated) {
    inflated.resize(static_cast<size_t>(record.size));
    RETURN_IF_ERROR(Inflate(data, inflated));
    data = inflated;
  }
  if (libdeflate_crc32(0, data.data(), data.size()) == record.crc) return data;
  return absl::InvalidArgumentError("is damaged: its checksum is another than the directory says");
}

}  // namespace npuc
