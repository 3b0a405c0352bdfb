#ifndef NPUC_TESTS_FAULT_JAIN_INDEX_H_
#define NPUC_TESTS_FAULT_JAIN_INDEX_H_

#include <vector>

namespace npuc {

// Jain's index of fairness of some shares: 1 where they are equal, 1/n where one of n has all.
double JainIndex(const std::vector<double>& shares);

}  // namespace npuc

#endif  // NPUC_TESTS_FAULT_JAIN_INDEX_H_
