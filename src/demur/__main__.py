"""Let `python -m demur` be the command."""

from demur.cli import main

if __name__ == "__main__":
    main()
