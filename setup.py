"""Builds the extension with CMake, against the torch that is installed: pip install --no-build-isolation ."""

import pathlib
import re
import subprocess
import sys

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = pathlib.Path(__file__).resolve().parent
VERSION = re.search(r'kVersion.*"(.*)"', (ROOT / "accordion/base/version.h").read_text())[1]


class CMakeBuild(build_ext):
    def build_extension(self, extension):
        import torch.utils  # Which metadata do without.

        build = pathlib.Path(self.build_temp).resolve()
        target = pathlib.Path(self.get_ext_fullpath(extension.name)).resolve()
        target.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["cmake", "-S", ROOT, "-B", build, "-G", "Ninja", "-Wno-dev", "-DACCORDION_PYTHON=ON",
                        "-DACCORDION_MPI=OFF", "-DCMAKE_UNITY_BUILD=ON", f"-DPython3_EXECUTABLE={sys.executable}",
                        f"-DCMAKE_PREFIX_PATH={torch.utils.cmake_prefix_path}"], check=True)
        subprocess.run(["cmake", "--build", build, "--target", "python", "-j2"], check=True)
        built, = (build / "python/accordion").glob("_core*.so")
        self.copy_file(built, target)


setup(version=VERSION, ext_modules=[Extension("accordion._core", sources=[])], cmdclass={"build_ext": CMakeBuild})
