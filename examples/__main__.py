"""Run every example and draw its picture: python examples FOLDER"""

import runpy
import sys
from pathlib import Path

HERE = Path(__file__).parent
NAMES = [file.stem for file in sorted(HERE.glob("*.py")) if file.stem not in ("__main__", "common")]

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name in NAMES:
        sys.argv = [name, str(folder / f"{name}.svg")]
        runpy.run_path(str(HERE / f"{name}.py"), run_name="__main__")
