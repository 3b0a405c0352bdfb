#!/usr/bin/python3
"""That run_commands.py finds what it must find, and that a command that fails fails its page."""

import subprocess
import unittest

import pages
import run_commands

PAGE = """# A page

```sh
one
```

1. In a list:

   ```sh not-run: takes long
   two
   ```

   ```yaml my.yaml
   KEY: 1
   ```

```
npuc of a picture, no command
```

    npuc my.yaml -o out
    KEY: value
    NAME=x build/bin/npuc my.yaml
"""


class PagesTest(unittest.TestCase):
    def test_blocks(self):
        found = [(b.kind, b.line, b.body, b.note) for b in pages.blocks(PAGE)]
        self.assertEqual(found, [("run", 4, "one\n", ""), ("not-run", 10, "two\n", "takes long"),
                                 ("file", 14, "KEY: 1\n", "my.yaml")])

    def test_blocks_that_say_neither(self):
        for info in ("sh later", "sh not-run: ", "yaml ../up"):
            with self.assertRaises(ValueError):
                pages.blocks(f"```{info}\nx\n```\n")

    def test_loose_commands(self):
        self.assertEqual([line for line, _ in pages.loose_commands(PAGE)], [21, 23])

    def test_stale_names(self):
        text = "`tests/run.sh --quick`, `tests/none.sh`, `pages.py`, `ctest -R 'rpc|gone'`, `a/b`"
        found = pages.stale_names("tests/docs/README.md", text, ["rpc_test"])
        self.assertEqual([line.split(": ")[1] for line in found],
                         ["tests/none.sh is not there", "no test is named gone"])

    def test_scripts_that_nobody_may_execute(self):
        text = ("```sh\ntests/run.sh\nA=b nice -n 3 tests/docs/pages.py --x\n```\n"
                "```sh not-run: long\ntests/none.py\npython3 tests/docs/pages.py\n```\n")
        self.assertEqual(pages.not_executable("p", text), [
            "p: tests/docs/pages.py is not executable (git update-index --chmod=+x)"])

    def run_script(self, text):
        script = run_commands.script_of("p", pages.blocks(text))
        return subprocess.run(["bash", "-c", script], check=False, capture_output=True).returncode

    def test_failures_fail(self):
        self.assertEqual(self.run_script("```sh\ntrue\n! false  # refused\n```\n"), 0)
        self.assertNotEqual(self.run_script("```sh\nfalse\ntrue\n```\n"), 0)
        self.assertNotEqual(self.run_script("```sh\nfalse | true\n```\n"), 0)
        self.assertNotEqual(self.run_script("```sh\n! true  # refused\n```\n"), 0)


if __name__ == "__main__":
    unittest.main()
