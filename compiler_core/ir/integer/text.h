#ifndef NPUC_COMPILER_CORE_IR_INTEGER_TEXT_H_
#define NPUC_COMPILER_CORE_IR_INTEGER_TEXT_H_

#include <functional>
#include <string>

#include "compiler_core/ir/integer/command.h"

namespace npuc::integer {

// One command on one line, without line end: its name, then each field as name=value, those that
// stand at their default left out; `operand_text` names operands ("data+0x20").
//   convolve a=data+0x0 weights=weight+0x40 ... in_h=49 in_w=10 d=data+0x1f0
std::string PrintCommand(const Body& body,
                         const std::function<std::string(const Operand&)>& operand_text);

// The rest of a command's header as text, each word with a space before it; the core
// where there are several: " descending core=1 barrier".
std::string PrintHeader(bool descending, int32_t core, bool barrier, bool has_cores);

// A whole program for people and tests: buffers, ports, then a command a line with its layer.
std::string PrintProgram(const Program& program);

}  // namespace npuc::integer

#endif  // NPUC_COMPILER_CORE_IR_INTEGER_TEXT_H_
