"""The examples run as they are, and the programs in docs/python.md."""

import ast
import contextlib
import io
import json
import re
import subprocess
import sys

import pytest
from conftest import ROOT, command_json

EXAMPLES = ROOT / "python/examples"


def run(program, *arguments, **options):
    line = [sys.executable, program, *arguments]
    ended = subprocess.run(line, capture_output=True, text=True, **options)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_look(trace):
    said = run(EXAMPLES / "look.py", trace)
    assert "collective" in said and re.search(r"rank \d to \d: [1-9]", said)


def test_choose_network(trace):
    said = run(EXAMPLES / "choose_network.py", trace)
    assert "shape: (12, " in said and " ms" in said


def test_network(trace):
    """With a window, and without, which is one batch for each moment."""
    times = {run(EXAMPLES / "network.py", trace, window).splitlines()[-1] for window in ("1.9", "0")}
    assert len(times) == 1 and " ms" in times.pop()
    lines = (EXAMPLES / "network.py").read_text().split("class Links:")[1].split("def main")[0].strip().splitlines()
    assert len(lines) <= 30


@pytest.mark.parametrize("number", range(3))
def test_the_programs_of_the_documentation(number, trace, tmp_path):
    page = (ROOT / "docs/python.md").read_text()
    programs = re.findall(r"```python\n(# .*?)```", page, re.DOTALL)
    assert len(programs) == 3
    (tmp_path / "lj.vefx").write_bytes(trace.read_bytes())
    program = tmp_path / "program.py"
    program.write_text(programs[number])
    assert run(program, cwd=tmp_path)


def outputs(source, names):
    """What a cell prints, and its last value as text and as HTML."""
    *statements, last = ast.parse(source).body
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        if not isinstance(last, ast.Expr):
            statements.append(last)
        exec(compile(ast.Module(statements, []), "cell", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    html = value._repr_html_() if hasattr(value, "_repr_html_") else None
    return printed.getvalue(), None if value is None else repr(value), html


def test_the_notebook(tmp_path, monkeypatch):
    """Each cell gives what the notebook shows."""
    monkeypatch.chdir(tmp_path)
    notebook = json.loads((EXAMPLES / "notebook.ipynb").read_text())
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    names = {}
    for cell in cells:
        shown = {"stream": "", "execute_result": {}}
        for output in cell["outputs"]:
            shown[output["output_type"]] = output.get("data") or "".join(output["text"])
        data = {kind: "".join(lines) for kind, lines in shown["execute_result"].items()}
        expected = (shown["stream"], data.get("text/plain"), data.get("text/html"))
        assert outputs("".join(cell["source"]), names) == expected
    assert len(cells) == 6


def test_the_capture_of_the_repository_is_the_one_checked(trace):
    assert command_json("check", trace)["complete"]
