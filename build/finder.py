"""Importer that runs first inside the binary: imports come from the module file; then the program starts.

It is compiled into the module file as `_coder_start`. Extension modules and data are in the folder, where the path
finder finds them through the `__path__` that packages get here.
"""

import _frozen_importlib as bootstrap
import sys

import _modules

ROOT = ""


def place_of(name, is_package):
    """Return the path where the module would be in the folder; data next to it exists there."""
    path = f"{ROOT}/{name.replace('.', '/')}"
    return f"{path}/__init__.pyc" if is_package else f"{path}.pyc"


class Finder:
    """Finder and loader; its only state is the file."""

    @staticmethod
    def find_spec(name, path=None, target=None):  # noqa: ARG004
        kind = _modules.kind(name)
        if kind is None or kind == 3:
            return None
        spec = bootstrap.ModuleSpec(name, Finder, origin=place_of(name, kind != 0), is_package=kind != 0)
        if kind:
            spec.submodule_search_locations.append(f"{ROOT}/{name.replace('.', '/')}")
        spec.has_location = kind != 2
        return spec

    @staticmethod
    def create_module(spec):  # noqa: ARG004
        return None

    @staticmethod
    def exec_module(module) -> None:
        code = _modules.code(module.__spec__.name)
        if code is not None:
            exec(code, module.__dict__)  # noqa: S102

    @staticmethod
    def get_code(name):
        return _modules.code(name)

    @staticmethod
    def get_source(name):  # noqa: ARG004
        return None

    @staticmethod
    def is_package(name):
        return _modules.kind(name) != 0

    @staticmethod
    def get_filename(name):
        return place_of(name, Finder.is_package(name))

    @staticmethod
    def get_resource_reader(name):
        """Return the reader of data next to a package's modules, for `importlib.resources`."""
        from importlib.readers import FileReader
        from types import SimpleNamespace

        return FileReader(SimpleNamespace(path=Finder.get_filename(name))) if Finder.is_package(name) else None

    @staticmethod
    def get_data(path):
        with open(path, "rb") as file:  # noqa: PTH123
            return file.read()


def run(root) -> None:
    global ROOT
    ROOT = root
    sys.frozen = True
    sys._MEIPASS = root
    sys.meta_path.insert(2, Finder)  # after built-in and frozen modules
    main = sys.modules["__main__"]
    main.__file__ = place_of("coder.__main__", False)
    exec(_modules.code("coder.__main__"), main.__dict__)  # noqa: S102
