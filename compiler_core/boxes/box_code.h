#ifndef NPUC_COMPILER_CORE_BOXES_BOX_CODE_H_
#define NPUC_COMPILER_CORE_BOXES_BOX_CODE_H_

namespace npuc {

// The C files that firmware gets as texts, which the build makes of them.
extern const char kBoxType[];       // npuc_box.h
extern const char kFixedBoxType[];  // npuc_fixed_box.h
extern const char kFloatNumbers[];  // float_numbers.c
extern const char kFixedNumbers[];  // fixed_numbers.c
extern const char kBoxDecoder[];    // decode_boxes.c

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_BOXES_BOX_CODE_H_
