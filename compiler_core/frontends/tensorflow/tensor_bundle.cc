#include "compiler_core/frontends/tensorflow/tensor_bundle.h"

#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler_core/base/diagnostic.h"
#include "compiler_core/base/status.h"
#include "compiler_core/frontends/tensorflow/graphdef.h"
#include "compiler_core/ir/graph/types.h"
#include "npuc/fe/tf/graph.pb.h"

namespace npuc::tf {
namespace {

constexpr size_t kFooterBytes = 48;  // two handles, padded, and the mark
constexpr size_t kTrailerBytes = 5;  // behind a block: how it is compressed, and a checksum
constexpr uint64_t kTableMark = 0xdb4775248b80fb57;
constexpr size_t kMaxVariables = 1 << 17;
constexpr size_t kMaxNameOfVariable = 1 << 12;

absl::Status Broken(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("variables.index is not usable: ", what));
}

// Takes a varint from the front of `text`; false where there is none.
bool TakeVarint(absl::string_view& text, uint64_t& value) {
  value = 0;
  for (int shift = 0; shift < 64 && !text.empty(); shift += 7) {
    const uint8_t byte = static_cast<uint8_t>(text[0]);
    text.remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) return true;
  }
  return false;
}

uint64_t LittleEndian(absl::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i > 0; --i) value = value << 8 | static_cast<uint8_t>(bytes[i - 1]);
  return value;
}

// Takes a block's handle, its offset and size, and gives the entries of the block.
absl::StatusOr<absl::string_view> TakeBlock(absl::string_view table, absl::string_view& handle) {
  uint64_t offset = 0;
  uint64_t size = 0;
  if (!TakeVarint(handle, offset) || !TakeVarint(handle, size) || offset > table.size() ||
      size > table.size() - offset || table.size() - offset - size < kTrailerBytes) {
    return Broken("a block lies outside of the file");
  }
  const absl::string_view block = table.substr(offset, size);
  if (table[offset + size] != 0) return Broken("its blocks are compressed");
  if (block.size() < 4) return Broken("a block is too short");
  const uint64_t restarts = LittleEndian(block.substr(block.size() - 4));
  if (restarts > (block.size() - 4) / 4) return Broken("a block is too short");
  return block.substr(0, block.size() - 4 - 4 * restarts);
}

// Takes an entry from the front of a block. A key has its beginning in common with the one before.
absl::Status TakeEntry(absl::string_view& block, std::string& key, absl::string_view& value) {
  uint64_t shared = 0;
  uint64_t rest = 0;
  uint64_t size = 0;
  if (!TakeVarint(block, shared) || !TakeVarint(block, rest) || !TakeVarint(block, size) ||
      shared > key.size() || rest > block.size() || size > block.size() - rest ||
      shared + rest > kMaxNameOfVariable) {
    return Broken("an entry lies outside of its block");
  }
  key.resize(shared);
  absl::StrAppend(&key, block.substr(0, rest));
  value = block.substr(rest, size);
  block.remove_prefix(rest + size);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TensorBundle> TensorBundle::Open(absl::string_view index,
                                                const std::vector<absl::string_view>& shards) {
  if (index.size() < kFooterBytes ||
      LittleEndian(index.substr(index.size() - sizeof(kTableMark))) != kTableMark) {
    return Broken("it is no table of a checkpoint, or is cut short");
  }
  TensorBundle bundle;
  bundle.shards_ = shards;
  absl::string_view handles = index.substr(index.size() - kFooterBytes);
  RETURN_IF_ERROR(TakeBlock(index, handles).status());  // the meta index, which is empty
  ASSIGN_OR_RETURN(absl::string_view blocks, TakeBlock(index, handles));
  std::string last_key;
  while (!blocks.empty()) {
    absl::string_view handle;
    RETURN_IF_ERROR(TakeEntry(blocks, last_key, handle));
    ASSIGN_OR_RETURN(absl::string_view block, TakeBlock(index, handle));
    std::string key;
    while (!block.empty()) {
      absl::string_view value;
      RETURN_IF_ERROR(TakeEntry(block, key, value));
      if (bundle.entries_.size() == kMaxVariables) return Broken("it has too many entries");
      bundle.entries_.emplace(key, std::string(value));
    }
  }
  fe::tf::BundleHeaderProto header;
  const auto found = bundle.entries_.find("");
  if (found == bundle.entries_.end() || !header.ParseFromString(found->second)) {
    return Broken("it has no header");
  }
  if (header.endianness() != 0) return Broken("its values are big-endian");
  if (header.num_shards() != static_cast<int64_t>(shards.size())) {
    return absl::InvalidArgumentError(absl::StrCat("variables.index speaks of ",
                                                   header.num_shards(), " files of variables, and ",
                                                   shards.size(), " are there"));
  }
  return bundle;
}

absl::StatusOr<BundleTensor> TensorBundle::Find(absl::string_view name) const {
  const auto broken = [&](absl::string_view what) {
    return absl::InvalidArgumentError(
        absl::StrCat("variable '", Printable(name), "' in the checkpoint ", what));
  };
  const auto found = entries_.find(name);
  if (found == entries_.end() || name.empty()) {
    return absl::NotFoundError(
        absl::StrCat("the checkpoint has no variable '", Printable(name), "'"));
  }
  fe::tf::BundleEntryProto entry;
  if (!entry.ParseFromString(found->second)) return broken("is damaged");
  if (entry.slices_size() > 0) return broken("is stored in slices; save the model again in one");
  BundleTensor tensor;
  tensor.data_type = entry.dtype();
  const DType dtype = DTypeFromWire(tensor.data_type);
  if (dtype == DType::kInvalid) {
    return broken(absl::StrCat("has type ", DataTypeName(tensor.data_type)));
  }
  for (const auto& dim : entry.shape().dim()) tensor.shape.push_back(dim.size());
  if (const absl::Status fits = CheckShape(tensor.shape); !fits.ok()) {
    return broken(absl::StrCat("is too large: ", fits.message()));
  }
  const int64_t element_bytes =
      tensor.data_type == fe::tf::DT_BFLOAT16 ? 2 : static_cast<int64_t>(SizeOf(dtype));
  if (entry.size() != ElementCount(tensor.shape) * element_bytes) {
    return broken(absl::StrCat("has ", entry.size(), " bytes, not those of its shape ",
                               ShapeToString(tensor.shape)));
  }
  if (entry.shard_id() < 0 || static_cast<size_t>(entry.shard_id()) >= shards_.size()) {
    return broken("lies in no file that is there");
  }
  const absl::string_view shard = shards_[static_cast<size_t>(entry.shard_id())];
  const auto shard_bytes = static_cast<int64_t>(shard.size());
  if (entry.offset() < 0 || entry.offset() > shard_bytes ||
      entry.size() > shard_bytes - entry.offset()) {
    return broken("lies behind the end of its file, which is cut short");
  }
  tensor.bytes =
      shard.substr(static_cast<size_t>(entry.offset()), static_cast<size_t>(entry.size()));
  return tensor;
}

}  // namespace npuc::tf
