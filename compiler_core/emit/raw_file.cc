#include "compiler_core/emit/raw_file.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler_core/base/json_tree.h"
#include "compiler_core/base/status.h"
#include "compiler_core/target/family.h"

namespace npuc {
namespace {

constexpr absl::string_view kNpubMagic = "NPUB";
constexpr absl::string_view kNpubEnd = "\xff\xff\xff\xff";
constexpr absl::string_view kJsonBegin = "{\"format\": \"NPUB\", ";
constexpr size_t kLengthBytes = 4;
constexpr JsonLimits kHeadLimits{.depth = 4};
constexpr JsonLimits kJsonLimits{.bytes = kMaxArtifactBytes, .depth = 4};

// --- writing ------------------------------------------------------------------------------------

absl::string_view CharsOf(const std::vector<uint8_t>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

absl::string_view PortTypeName(DType dtype) {
  return dtype == DType::kFloat32 ? "float32" : "float16";
}

std::string PortsText(const std::vector<PortTensor>& ports) {
  std::string out = "[";
  for (const PortTensor& port : ports) {
    absl::StrAppend(&out, out.size() == 1 ? "" : ", ", "{\"name\": ", JsonQuoted(port.name),
                    ", \"type\": \"", PortTypeName(port.dtype), "\", \"shape\": [");
    for (size_t i = 0; i < port.shape.size(); ++i) {
      absl::StrAppend(&out, i == 0 ? "" : ", ", port.shape[i]);
    }
    absl::StrAppend(&out, "], \"address\": ", port.offset_bytes);
    if (port.state_input >= 0) absl::StrAppend(&out, ", \"state_input\": ", port.state_input);
    absl::StrAppend(&out, "}");
  }
  return absl::StrCat(out, "]");
}

// The members of the object, without its braces.
std::string MembersText(const CompiledModel& model) {
  std::string out;
  const auto add = [&](absl::string_view name, const std::string& value) {
    absl::StrAppend(&out, out.empty() ? "\"" : ", \"", name, "\": ", value);
  };
  add("core", JsonQuoted(model.core));
  add("npu_unit", JsonQuoted(model.npu_unit));
  add("version", JsonQuoted(model.version));
  add("pb_md5", JsonQuoted(model.model_md5));
  add("model_info", JsonQuoted(model.model_info));
  add("inputs", PortsText(model.inputs));
  add("outputs", PortsText(model.outputs));
  add("cmd_content_length", absl::StrCat(model.cmd_content.size()));
  add("weight_content_length", absl::StrCat(model.weight_content.size()));
  add("npu_content_length", absl::StrCat(model.cmd_content.size() + model.weight_content.size()));
  add("cpu_prepared_length", "0");
  add("ops_content_length", absl::StrCat(model.ops_content.size()));
  add("data_content_length", absl::StrCat(model.data_bytes));
  return out;
}

// --- reading ------------------------------------------------------------------------------------

absl::Status NotSound(const std::string& message) { return absl::InvalidArgumentError(message); }

// Takes the members of an object by name; Finish() refuses those that nobody took.
class JsonMembers {
 public:
  explicit JsonMembers(const JsonNode& object) : object_(object), taken_(object.keys.size()) {}

  absl::StatusOr<const JsonNode*> Take(absl::string_view name, JsonNode::Kind kind) {
    const JsonNode* found = nullptr;
    for (size_t i = 0; i < object_.keys.size(); ++i) {
      if (object_.keys[i].name != name) continue;
      if (found != nullptr) return NotSound(absl::StrCat("it has ", name, " twice"));
      found = &object_.items[i];
      taken_[i] = true;
    }
    if (found == nullptr) return NotSound(absl::StrCat("it has no ", name));
    if (found->kind == kind) return found;
    return NotSound(absl::StrCat(name, " is ", DescribeJson(*found)));
  }
  bool Has(absl::string_view name) const {
    for (const JsonNode::Key& key : object_.keys) {
      if (key.name == name) return true;
    }
    return false;
  }
  absl::Status TakeText(absl::string_view name, std::string& text) {
    ASSIGN_OR_RETURN(const JsonNode* node, Take(name, JsonNode::Kind::kString));
    text = node->text;
    return absl::OkStatus();
  }
  absl::StatusOr<int64_t> TakeNumber(absl::string_view name, int64_t most) {
    ASSIGN_OR_RETURN(const JsonNode* node, Take(name, JsonNode::Kind::kInteger));
    if (node->integer >= 0 && node->integer <= most) return node->integer;
    return NotSound(absl::StrCat(name, " is ", Printable(node->text), ", outside 0..", most));
  }
  absl::Status Finish() const {
    for (size_t i = 0; i < taken_.size(); ++i) {
      if (taken_[i]) continue;
      return NotSound(
          absl::StrCat("it has the unknown member '", Printable(object_.keys[i].name, 60), "'"));
    }
    return absl::OkStatus();
  }

 private:
  const JsonNode& object_;
  std::vector<bool> taken_;
};

absl::StatusOr<PortTensor> TakeJsonPort(const JsonNode& node, int64_t offset) {
  if (node.kind != JsonNode::Kind::kObject) return NotSound("a port is no object");
  JsonMembers members(node);
  PortTensor port;
  RETURN_IF_ERROR(members.TakeText("name", port.name));
  std::string type;
  RETURN_IF_ERROR(members.TakeText("type", type));
  if (type != PortTypeName(DType::kFloat16) && type != PortTypeName(DType::kFloat32)) {
    return NotSound(absl::StrCat("port ", Printable(port.name), " is of type '",
                                 Printable(type, 60), "'; known are float16 and float32"));
  }
  port.dtype = type == PortTypeName(DType::kFloat16) ? DType::kFloat16 : DType::kFloat32;
  ASSIGN_OR_RETURN(const JsonNode* shape, members.Take("shape", JsonNode::Kind::kArray));
  if (shape->items.size() > static_cast<size_t>(kMaxRank)) {
    return NotSound(absl::StrCat("port ", Printable(port.name), " has rank ", shape->items.size()));
  }
  for (const JsonNode& dim : shape->items) {
    if (dim.kind != JsonNode::Kind::kInteger) {
      return NotSound(
          absl::StrCat("a dimension of port ", Printable(port.name), " is ", DescribeJson(dim)));
    }
    port.shape.push_back(dim.integer);
  }
  RETURN_IF_ERROR(CheckShape(port.shape));
  ASSIGN_OR_RETURN(port.offset_bytes, members.TakeNumber("address", kMaxArtifactBytes));
  if (port.offset_bytes != offset) {
    return NotSound(absl::StrCat("port ", Printable(port.name), " is at ", port.offset_bytes,
                                 "; the ports before it end at ", offset));
  }
  if (members.Has("state_input")) {
    ASSIGN_OR_RETURN(const int64_t input,
                     members.TakeNumber("state_input", static_cast<int64_t>(kMaxPorts)));
    port.state_input = static_cast<int>(input);
  }
  RETURN_IF_ERROR(members.Finish());
  return port;
}

absl::Status TakeJsonPorts(JsonMembers& members, absl::string_view name,
                           std::vector<PortTensor>& ports) {
  ASSIGN_OR_RETURN(const JsonNode* list, members.Take(name, JsonNode::Kind::kArray));
  if (list->items.size() > kMaxPorts) {
    return NotSound(absl::StrCat(list->items.size(), " ", name, "; at most ", kMaxPorts));
  }
  int64_t offset = 0;
  for (const JsonNode& node : list->items) {
    ASSIGN_OR_RETURN(PortTensor port, TakeJsonPort(node, offset));
    offset += ElementCount(port.shape) * SizeOf(port.dtype);
    ports.push_back(std::move(port));
  }
  return absl::OkStatus();
}

struct ContentLengths {
  int64_t cmd = 0, weight = 0, ops = 0;
  int64_t sum() const { return cmd + weight + ops; }
};

// All that both forms have in common.
absl::StatusOr<ContentLengths> TakeHead(JsonMembers& members, CompiledModel& model) {
  RETURN_IF_ERROR(members.TakeText("core", model.core));
  const CoreSpec* core = FindCore(model.core);
  if (core == nullptr || core->limits == nullptr) {
    return NotSound(absl::StrCat("its core is '", Printable(model.core, 60),
                                 "', which has no such "
                                 "files"));
  }
  RETURN_IF_ERROR(members.TakeText("npu_unit", model.npu_unit));
  RETURN_IF_ERROR(members.TakeText("version", model.version));
  RETURN_IF_ERROR(members.TakeText("pb_md5", model.model_md5));
  RETURN_IF_ERROR(members.TakeText("model_info", model.model_info));
  RETURN_IF_ERROR(TakeJsonPorts(members, "inputs", model.inputs));
  RETURN_IF_ERROR(TakeJsonPorts(members, "outputs", model.outputs));
  ContentLengths lengths;
  ASSIGN_OR_RETURN(lengths.cmd, members.TakeNumber("cmd_content_length", kMaxArtifactBytes));
  ASSIGN_OR_RETURN(lengths.weight, members.TakeNumber("weight_content_length", kMaxArtifactBytes));
  ASSIGN_OR_RETURN(lengths.ops, members.TakeNumber("ops_content_length", kMaxArtifactBytes));
  ASSIGN_OR_RETURN(const int64_t npu,
                   members.TakeNumber("npu_content_length", 2 * kMaxArtifactBytes));
  if (npu != lengths.cmd + lengths.weight) {
    return NotSound(absl::StrCat("npu_content_length is ", npu,
                                 ", not that of commands and weights, ",
                                 lengths.cmd + lengths.weight));
  }
  ASSIGN_OR_RETURN(const int64_t prepared,
                   members.TakeNumber("cpu_prepared_length", kMaxArtifactBytes));
  if (prepared != 0) {
    return NotSound(absl::StrCat("it has ", prepared,
                                 " bytes of cpu_prepared, whose meaning is not published"));
  }
  ASSIGN_OR_RETURN(model.data_bytes, members.TakeNumber("data_content_length", INT64_MAX));
  RETURN_IF_ERROR(CheckStates(model));
  return lengths;
}

absl::StatusOr<JsonNode> ParseJsonObject(absl::string_view text, const JsonLimits& limits) {
  JsonNode root;
  JsonError error;
  if (!ParseJsonTree(text, limits, root, error)) {
    return NotSound(absl::StrCat("its JSON, line ", error.place.line, ": ", error.message));
  }
  if (root.kind != JsonNode::Kind::kObject) return NotSound("its JSON is no object");
  return root;
}

std::vector<uint8_t> BytesOfText(absl::string_view chars) { return {chars.begin(), chars.end()}; }

absl::StatusOr<CompiledModel> ParseNpub(absl::string_view bytes) {
  absl::string_view rest = bytes.substr(kNpubMagic.size());
  if (rest.size() < kLengthBytes) return NotSound("it ends within the length of its JSON");
  uint32_t json_bytes = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) {
    json_bytes = json_bytes << 8 | static_cast<uint8_t>(rest[i]);
  }
  rest.remove_prefix(kLengthBytes);
  if (json_bytes >= rest.size()) {
    return NotSound(
        absl::StrCat("its JSON has ", json_bytes, " bytes, and only ", rest.size(), " are left"));
  }
  ASSIGN_OR_RETURN(const JsonNode root, ParseJsonObject(rest.substr(0, json_bytes), kHeadLimits));
  rest.remove_prefix(json_bytes);
  if (rest[0] != '\0') return NotSound("no zero byte stands behind its JSON");
  rest.remove_prefix(1);
  CompiledModel model;
  JsonMembers members(root);
  ASSIGN_OR_RETURN(const ContentLengths lengths, TakeHead(members, model));
  RETURN_IF_ERROR(members.Finish());
  const int64_t expected = lengths.sum() + static_cast<int64_t>(kNpubEnd.size());
  if (static_cast<int64_t>(rest.size()) != expected) {
    return NotSound(
        absl::StrCat("behind its JSON it has ", rest.size(), " bytes; its lengths say ", expected));
  }
  if (!absl::EndsWith(rest, kNpubEnd)) return NotSound("it does not end in ff ff ff ff");
  const auto take = [&rest](int64_t length) {
    const absl::string_view content = rest.substr(0, static_cast<size_t>(length));
    rest.remove_prefix(content.size());
    return BytesOfText(content);
  };
  model.cmd_content = take(lengths.cmd);
  model.weight_content = take(lengths.weight);
  model.ops_content = take(lengths.ops);
  return model;
}

absl::StatusOr<CompiledModel> ParseNpubJson(absl::string_view bytes) {
  ASSIGN_OR_RETURN(const JsonNode root, ParseJsonObject(bytes, kJsonLimits));
  CompiledModel model;
  JsonMembers members(root);
  RETURN_IF_ERROR(members.Take("format", JsonNode::Kind::kString).status());
  ASSIGN_OR_RETURN(const ContentLengths lengths, TakeHead(members, model));
  const auto take = [&members](absl::string_view name, int64_t length,
                               std::vector<uint8_t>& content) -> absl::Status {
    ASSIGN_OR_RETURN(const JsonNode* text, members.Take(name, JsonNode::Kind::kString));
    std::string decoded;
    if (!absl::Base64Unescape(text->text, &decoded)) {
      return NotSound(absl::StrCat(name, " is no base64"));
    }
    if (static_cast<int64_t>(decoded.size()) != length) {
      return NotSound(
          absl::StrCat(name, " has ", decoded.size(), " bytes; its length is ", length));
    }
    content = BytesOfText(decoded);
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(take("cmd_content", lengths.cmd, model.cmd_content));
  RETURN_IF_ERROR(take("weight_content", lengths.weight, model.weight_content));
  RETURN_IF_ERROR(take("ops_content", lengths.ops, model.ops_content));
  RETURN_IF_ERROR(members.Finish());
  return model;
}

}  // namespace

absl::Status WriteRawFile(const CompiledModel& model, const ByteSink& sink) {
  const std::string json = absl::StrCat("{", MembersText(model), "}");
  std::string head(kNpubMagic);
  for (int shift = 24; shift >= 0; shift -= 8) {
    head.push_back(static_cast<char>(json.size() >> shift & 0xff));
  }
  absl::StrAppend(&head, json);
  head.push_back('\0');
  RETURN_IF_ERROR(sink(head));
  for (const auto* content : {&model.cmd_content, &model.weight_content, &model.ops_content}) {
    RETURN_IF_ERROR(sink(CharsOf(*content)));
  }
  return sink(kNpubEnd);
}

absl::Status WriteRawJson(const CompiledModel& model, const ByteSink& sink) {
  RETURN_IF_ERROR(sink(absl::StrCat(kJsonBegin, MembersText(model))));
  for (const auto& [name, content] : {std::pair("cmd_content", &model.cmd_content),
                                      {"weight_content", &model.weight_content},
                                      {"ops_content", &model.ops_content}}) {
    RETURN_IF_ERROR(
        sink(absl::StrCat(", \"", name, "\": \"", absl::Base64Escape(CharsOf(*content)), "\"")));
  }
  return sink("}\n");
}

bool IsRawFile(absl::string_view bytes) {
  return absl::StartsWith(bytes, kNpubMagic) || absl::StartsWith(bytes, kJsonBegin);
}

absl::StatusOr<CompiledModel> ReadRawFile(absl::string_view bytes, absl::string_view file_name,
                                          Diagnostics& diagnostics) {
  absl::StatusOr<CompiledModel> model = !IsRawFile(bytes) ? NotSound("it does not begin with NPUB")
                                        : absl::StartsWith(bytes, kNpubMagic)
                                            ? ParseNpub(bytes)
                                            : ParseNpubJson(bytes);
  return CheckedModel(std::move(model), "NPUB file", file_name, diagnostics);
}

}  // namespace npuc
