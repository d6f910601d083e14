# SPDX-License-Identifier: Apache-2.0
"""`python -m plumb …` is the `plumb` command."""
from plumb._command import main

if __name__ == "__main__":
    main()
