"""``python -m disco_eval`` is the command ``disco``."""

from .cli import main

if __name__ == "__main__":
    main()
