#include "compiler_core/frontends/common/sniff.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace npuc {
namespace {

// Reads a varint at *offset; false where the bytes end first or it is longer than ten bytes.
bool ReadVarint(absl::string_view bytes, uint64_t* offset, uint64_t* value) {
  *value = 0;
  for (int i = 0; i < 10; ++i) {
    if (*offset >= bytes.size()) return false;
    const uint8_t byte = static_cast<uint8_t>(bytes[(*offset)++]);
    *value |= static_cast<uint64_t>(byte & 0x7f) << (7 * i);
    if ((byte & 0x80) == 0) return true;
  }
  return false;
}

// The name of the section that the first line of an INI file begins, without the brackets; empty
// where that line, comments aside, begins none.
absl::string_view FirstSection(absl::string_view text) {
  text = absl::StripLeadingAsciiWhitespace(text);
  while (absl::StartsWith(text, "#") || absl::StartsWith(text, ";")) {
    text = text.substr(std::min(text.find('\n'), text.size()));
    text = absl::StripLeadingAsciiWhitespace(text);
  }
  const absl::string_view line =
      absl::StripTrailingAsciiWhitespace(text.substr(0, text.find('\n')));
  if (line.size() < 3 || line.front() != '[' || line.back() != ']') return "";
  return absl::StripAsciiWhitespace(line.substr(1, line.size() - 2));
}

constexpr size_t kTextHead = 4096;

constexpr char kNameTheSource[] =
    "name the ONNX, TFLite or PyTorch model that it was converted from";

// Formats that the first bytes of a file show.
struct Beginning {
  absl::string_view bytes;
  absl::string_view what;
  absl::string_view fix;
};
constexpr Beginning kBeginnings[] = {
    {"\x1f\x8b", "a gzip file", "unpack it first"},
    {"GGUF", "a GGUF file, as language models are: weights without a graph",
     "export the model that they belong to as ONNX or TorchScript"},
    {"RKNN", "an .rknn file, made for the NPU of another vendor", kNameTheSource},
    {"KMDL", "a .kmodel of nncase, made for the NPU of another vendor", kNameTheSource},
    {"LDMK", "a .kmodel of nncase, made for the NPU of another vendor", kNameTheSource},
    {"7767517", "the .param of an ncnn net", kNameTheSource},
    {"\x80\x02", "a Python pickle: an object or weights, without code",
     "load it in Python, and save the model by torch.jit.save(torch.jit.script(model), path)"},
};

// A length of eight bytes, and so many bytes of JSON.
bool IsSafetensors(absl::string_view bytes) {
  if (bytes.size() < 10 || bytes[8] != '{') return false;
  uint64_t length = 0;
  for (size_t i = 0; i < 8; ++i) {
    length |= static_cast<uint64_t>(static_cast<uint8_t>(bytes[i])) << (8 * i);
  }
  return length >= 2 && length <= bytes.size() - 8;
}

// By its layers, of today's form or of the old one.
bool IsCaffeNet(const WireOutline& wire) {
  constexpr int kName = 1;
  constexpr int kOldLayers = 2;
  constexpr int kLayers = 100;
  return wire.length_delimited[kName] <= 1 &&
         (wire.length_delimited[kLayers] > 0 || wire.length_delimited[kOldLayers] > 1);
}

FileGuess GuessText(absl::string_view bytes) {
  const absl::string_view text = absl::StripLeadingAsciiWhitespace(bytes);
  const absl::string_view section = FirstSection(bytes);
  if (section == "net" || section == "network") {
    return {"the .cfg of a Darknet net", "set FRAMEWORK: DARKNET"};
  }
  if (section == "Common" || section == "Parser" || section == "Optimizer" ||
      section == "GBuilder") {
    return {"a config of aipubuild, which names a model and is none",
            "compile it by its own name: npuc FILE"};
  }
  if (absl::StartsWith(text, "node {") || absl::StartsWith(text, "node{") ||
      absl::StartsWith(text, "versions {") || absl::StartsWith(text, "library {")) {
    return {"a GraphDef in text form (pbtxt)",
            "write it in binary form: tf.io.write_graph(graph, dir, name, as_text=False)"};
  }
  const absl::string_view head = text.substr(0, kTextHead);
  for (const absl::string_view layer : {"layer {", "layer{", "layers {", "layers{"}) {
    if (!absl::StrContains(head, layer)) continue;
    return {"a Caffe net in text form (.prototxt)",
            "name it in PROTOTXT, and the .caffemodel in MODEL_FILE"};
  }
  if (absl::StartsWith(text, "{")) {
    return {"JSON", "freeze the model to a binary GraphDef (.pb)"};
  }
  if (absl::StartsWith(text, "version https://git-lfs")) {
    return {"a Git LFS pointer, not the model itself", "fetch the model with git lfs pull"};
  }
  if (absl::StartsWith(text, "<?xml") && absl::StrContains(text.substr(0, kTextHead), "<net ")) {
    return {"the .xml of an OpenVINO model", kNameTheSource};
  }
  if (absl::StartsWith(text, "<")) {
    return {"HTML or XML", "download the model file itself"};
  }
  return {"text", "name a frozen GraphDef in binary form (.pb) as MODEL_FILE"};
}

}  // namespace

bool IsMostlyText(absl::string_view bytes) {
  const absl::string_view head = bytes.substr(0, 512);
  if (head.empty()) return false;
  return std::all_of(head.begin(), head.end(), [](char c) {
    const unsigned char u = static_cast<unsigned char>(c);
    return (u >= 0x20 && u < 0x7f) || c == '\n' || c == '\r' || c == '\t';
  });
}

WireOutline OutlineWire(absl::string_view bytes) {
  WireOutline outline;
  uint64_t offset = 0;
  while (offset < bytes.size()) {
    outline.broken_offset = offset;
    uint64_t tag = 0;
    if (!ReadVarint(bytes, &offset, &tag)) {
      outline.needed_bytes = 1;
      return outline;
    }
    const uint64_t field = tag >> 3;
    outline.broken_field = field;
    if (outline.broken_offset == 0 && tag == 8) outline.starts_with_varint_1 = true;
    uint64_t length = 0;
    switch (tag & 7) {
      case 0:
        if (!ReadVarint(bytes, &offset, &length)) {
          outline.needed_bytes = 1;
          return outline;
        }
        length = 0;
        break;
      case 1:
        length = 8;
        break;
      case 2:
        if (!ReadVarint(bytes, &offset, &length)) {
          outline.needed_bytes = 1;
          return outline;
        }
        if (field < std::size(outline.length_delimited)) ++outline.length_delimited[field];
        break;
      case 5:
        length = 4;
        break;
      default:
        return outline;  // groups are not used by any format we know
    }
    if (field == 0) return outline;
    if (length > bytes.size() - offset) {
      outline.needed_bytes = length;
      outline.left_bytes = bytes.size() - offset;
      return outline;
    }
    offset += length;
  }
  outline.well_formed = true;
  return outline;
}

bool IsPaddleProgram(absl::string_view bytes) {
  // Field 1, its length, and in it fields 1 and 2.
  if (!absl::StartsWith(bytes, "\x0a")) return false;
  uint64_t offset = 1;
  uint64_t length = 0;
  return ReadVarint(bytes, &offset, &length) &&
         absl::StartsWith(bytes.substr(offset), absl::string_view("\x08\x00\x10", 3));
}

FileGuess GuessFileKind(absl::string_view bytes) {
  if (absl::StartsWith(bytes, absl::string_view("PK\x03\x04", 4))) {
    return {
        "a zip archive, as TorchScript, Keras v3 and NumPy .npz files are",
        absl::StrCat("set FRAMEWORK: PT for TorchScript; where it is of Keras, ", kExportKeras)};
  }
  if (bytes.size() >= 8 && bytes.substr(4, 4) == "TFL3") {
    return {"a TensorFlow Lite model", "set FRAMEWORK: TFLITE"};
  }
  if (absl::StartsWith(bytes, "\x89HDF\r\n")) {
    return {"an HDF5 file, as Keras .h5 models are", kExportKeras};
  }
  for (const Beginning& one : kBeginnings) {
    if (absl::StartsWith(bytes, one.bytes)) return {std::string(one.what), std::string(one.fix)};
  }
  if (IsSafetensors(bytes)) {
    return {"a safetensors file: weights without a graph",
            "export the model that they belong to as ONNX or TorchScript"};
  }
  if (IsPaddleProgram(bytes)) return {"a program of PaddlePaddle", "set FRAMEWORK: PADDLE"};
  if (IsMostlyText(bytes)) return GuessText(bytes);
  const WireOutline wire = OutlineWire(bytes);
  if (!wire.well_formed) return {};
  if (wire.starts_with_varint_1 && wire.length_delimited[7] > 0) {
    return {"an ONNX model", "set FRAMEWORK: ONNX"};
  }
  if (wire.starts_with_varint_1 && wire.length_delimited[2] > 0) {
    return {"a SavedModel (saved_model.pb)",
            "name its folder as MODEL_FILE, which also holds its variables"};
  }
  if (IsCaffeNet(wire)) return {"a Caffe model", "set FRAMEWORK: CAFFE"};
  if (wire.length_delimited[1] == 1 && wire.length_delimited[2] == 1) {
    return {"a MetaGraphDef (.meta)", "freeze it with its checkpoint to a GraphDef (freeze_graph)"};
  }
  return {};
}

std::nullptr_t RefuseFile(DiagnosticKind kind, absl::string_view file, std::string message,
                          std::string fix, Diagnostics& diagnostics) {
  diagnostics.Add({.kind = kind,
                   .message = std::move(message),
                   .file = std::string(file),
                   .fix = std::move(fix)});
  return nullptr;
}

}  // namespace npuc
