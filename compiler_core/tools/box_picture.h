#ifndef NPUC_COMPILER_CORE_TOOLS_BOX_PICTURE_H_
#define NPUC_COMPILER_CORE_TOOLS_BOX_PICTURE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler_core/boxes/box_plan.h"

namespace npuc {

// A picture file that an input was read from.
struct PictureFile {
  std::string name;  // without its ending; '/' is '_'
  std::string bytes;
};

// The pictures of an argument of --input, which is a picture, or a folder or zip file of them, in
// the order in which they are items. Empty: it holds something else, too.
absl::StatusOr<std::vector<PictureFile>> PicturesOf(const std::string& path);

// A JPEG file of the picture with the boxes, their classes and scores drawn into it. A picture that
// is larger than kMaxSide of picture.h becomes smaller. The same input gives the same bytes.
absl::StatusOr<std::string> DrawBoxes(absl::string_view picture,
                                      absl::Span<const DetectedBox> boxes);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_TOOLS_BOX_PICTURE_H_
