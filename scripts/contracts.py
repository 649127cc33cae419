"""The allowed imports between the packages, as a contract that import-linter checks."""

from __future__ import annotations

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output


class OnlyContract(Contract):
    """Of this library's packages, a package imports only itself and those it is allowed to.

    The contracts of import-linter itself would need every module of ``brain/`` listed by name, as
    these are what ``agent_brain`` holds beside the other packages.
    """

    type_name = "only"

    package = fields.ModuleField()
    may_import = fields.SetField(subfield=fields.ModuleField(), required=False, default=set())

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:  # noqa: FBT001 - as it is called
        """Check the direct imports of every module in the package."""
        package = self.package.name  # type: ignore[attr-defined]
        allowed = [package, *(module.name for module in self.may_import)]  # type: ignore[attr-defined]
        wrong = [
            f"{importer}:{detail['line_number']} imports {imported}"
            for importer in sorted({package} | graph.find_descendants(package))
            for imported in sorted(graph.find_modules_directly_imported_by(importer))
            if not _is_in(imported, allowed)
            for detail in graph.get_import_details(importer=importer, imported=imported)
        ]
        return ContractCheck(kept=not wrong, metadata={"wrong": wrong})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Print one line for each import that is not allowed."""
        for line in check.metadata["wrong"]:
            output.print_error(line, bold=False)
        output.new_line()


class ApartContract(Contract):
    """The modules of the framework import none of the rooms that stand on it.

    Only the facade may, ``agent_brain`` itself, which imports them when they are asked for, and
    ``python -m agent_brain``.
    """

    type_name = "apart"

    package = fields.ModuleField()
    rooms = fields.SetField(subfield=fields.ModuleField())

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:  # noqa: FBT001 - as it is called
        """Check the direct imports of every module that is in none of the rooms."""
        package = self.package.name  # type: ignore[attr-defined]
        rooms = [module.name for module in self.rooms]  # type: ignore[attr-defined]
        wrong = [
            f"{importer}:{detail['line_number']} imports {imported}"
            for importer in sorted(graph.find_descendants(package))
            if importer != f"{package}.__main__" and not _is_in(importer, rooms)
            for imported in sorted(graph.find_modules_directly_imported_by(importer))
            if _is_in(imported, rooms)
            for detail in graph.get_import_details(importer=importer, imported=imported)
        ]
        return ContractCheck(kept=not wrong, metadata={"wrong": wrong})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Print one line for each import that is not allowed."""
        for line in check.metadata["wrong"]:
            output.print_error(line, bold=False)
        output.new_line()


def _is_in(module: str, packages: list[str]) -> bool:
    return any(module == name or module.startswith(f"{name}.") for name in packages)
