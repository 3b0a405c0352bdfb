#ifndef NPUC_COMPILER_CORE_QUANT_DATA_PICTURE_VALUES_H_
#define NPUC_COMPILER_CORE_QUANT_DATA_PICTURE_VALUES_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "compiler_core/ir/graph/types.h"
#include "compiler_core/quant/data/picture_file.h"
#include "compiler_core/quant/data/picture_form.h"

namespace npuc {

// Writes a picture as a sample of an input of `shape`: [1,height,width,channels] or
// [1,channels,height,width] (form.layout says which, or the place of 1 or 3 channels), the same
// without the 1, or [height,width]; any other shape takes the pixels row by row, channels last.
// A grey input of a coloured picture gets 0.299 red + 0.587 green + 0.114 blue, a coloured input of
// a grey picture the same in each channel. `out` has the shape's elements. INVALID_ARGUMENT where
// the picture does not fit, saying what would.
absl::Status PictureToValues(const Pixels& pixels, const PictureForm& form, const Shape& shape,
                             absl::Span<float> out);

}  // namespace npuc

#endif  // NPUC_COMPILER_CORE_QUANT_DATA_PICTURE_VALUES_H_
