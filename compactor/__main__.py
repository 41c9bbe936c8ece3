"""`python -m compactor` is the command `compactor`."""

from compactor.cli import main

if __name__ == "__main__":
    main()
