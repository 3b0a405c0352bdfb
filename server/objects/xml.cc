#include "server/objects/xml.h"

#include <expat.h>

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace npuc::objects {
namespace {

// Collects the leaves as expat calls back.
class Leaves {
 public:
  explicit Leaves(XML_Parser parser) : parser_(parser) {
    XML_SetUserData(parser, this);
    XML_SetElementHandler(
        parser,
        [](void* self, const XML_Char* name, const XML_Char**) {
          static_cast<Leaves*>(self)->Begin(name);
        },
        [](void* self, const XML_Char*) { static_cast<Leaves*>(self)->End(); });
    XML_SetCharacterDataHandler(parser, [](void* self, const XML_Char* text, int size) {
      static_cast<Leaves*>(self)->text_.append(text, static_cast<size_t>(size));
    });
    // Entities of its own would be needed for nothing but harm.
    XML_SetStartDoctypeDeclHandler(
        parser, [](void* self, const XML_Char*, const XML_Char*, const XML_Char*, int) {
          static_cast<Leaves*>(self)->Stop("has a DOCTYPE");
        });
  }

  // Empty: nothing but what expat says itself.
  const std::string& refusal() const { return refusal_; }
  std::vector<XmlLeaf> Take() { return std::move(leaves_); }

 private:
  void Stop(absl::string_view why) {
    refusal_ = std::string(why);
    XML_StopParser(parser_, XML_FALSE);
  }

  void Begin(const XML_Char* name) {
    if (open_.size() == kMaxXmlDepth) return Stop("has too many elements in each other");
    open_.emplace_back(name);
    text_.clear();
    is_leaf_ = true;
  }

  void End() {
    if (!refusal_.empty()) return;  // an element that was empty ends behind its refused begin
    if (is_leaf_) {
      if (leaves_.size() == kMaxXmlLeaves) return Stop("has too many elements");
      leaves_.push_back({.path = absl::StrJoin(open_, "/"), .text = std::move(text_)});
    }
    text_.clear();
    open_.pop_back();
    is_leaf_ = false;
  }

  const XML_Parser parser_;
  std::string refusal_;
  std::vector<std::string> open_;
  std::string text_;      // of the innermost element
  bool is_leaf_ = false;  // it has had no children
  std::vector<XmlLeaf> leaves_;
};

}  // namespace

absl::StatusOr<std::vector<XmlLeaf>> ReadXmlLeaves(absl::string_view document) {
  if (document.size() > kMaxXmlBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("XML of ", document.size(), " bytes; at most ", kMaxXmlBytes, " are read"));
  }
  const std::unique_ptr<XML_ParserStruct, decltype(&XML_ParserFree)> parser(
      XML_ParserCreate("UTF-8"), &XML_ParserFree);
  if (parser == nullptr) return absl::ResourceExhaustedError("no memory to read XML");
  Leaves leaves(parser.get());
  const bool is_read = XML_Parse(parser.get(), document.data(), static_cast<int>(document.size()),
                                 /*isFinal=*/1) == XML_STATUS_OK;
  if (is_read) return leaves.Take();
  const absl::string_view why = leaves.refusal().empty()
                                    ? XML_ErrorString(XML_GetErrorCode(parser.get()))
                                    : absl::string_view(leaves.refusal());
  return absl::InvalidArgumentError(
      absl::StrCat("XML: ", why, " (byte ", XML_GetCurrentByteIndex(parser.get()), ")"));
}

}  // namespace npuc::objects
