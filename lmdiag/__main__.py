"""`python -m lmdiag` is the console script."""

from lmdiag.cli import main

raise SystemExit(main())
