#ifndef NPUC_COMPILER_CORE_BOXES_BOX_CODE_H_
#define NPUC_COMPILER_CORE_BOXES_BOX_CODE_H_

namespace npuc {

// npuc_box.h and decode_boxes.c as texts, which the build makes of them.
extern const char kBoxType[];
extern const char kBoxDecoder[];

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_BOXES_BOX_CODE_H_
