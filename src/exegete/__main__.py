"""`python -m exegete`: the command line, where the command itself is not on the path."""

from exegete.cli import main

if __name__ == "__main__":
    main()
