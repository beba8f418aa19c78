"""`python -m muniment.cli` is `muniment`."""

from muniment.cli.main import main

main()
