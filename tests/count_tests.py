#!/usr/bin/python3
"""Adds up ctest's JUnit files: names what failed or was skipped, ends with one line of totals.

    count_tests.py FILE...      exit 1 where a test failed, or where there was none
"""

import os
import sys
import xml.etree.ElementTree as ElementTree


def main():
    passed = failed = skipped = 0
    for path in sys.argv[1:]:
        if not os.path.exists(path):
            continue
        suite = os.path.basename(path).replace(".junit.xml", "")
        for case in ElementTree.parse(path).getroot().iter("testcase"):
            name = f"{case.get('name')} ({suite})"
            if case.find("failure") is not None or case.get("status") == "fail":
                failed += 1
                print(f"failed: {name}")
            elif case.find("skipped") is not None or case.get("status") != "run":
                skipped += 1
                print(f"skipped: {name}")
            else:
                passed += 1
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
