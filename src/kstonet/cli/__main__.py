"""``python -m kstonet.cli``."""

from kstonet.cli import main

if __name__ == "__main__":
    main()
