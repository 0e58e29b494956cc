from __future__ import annotations

from observant_host.config.dotenv import read_dotenv


def test_env_files_are_read_as_other_clients_read_them() -> None:
    text = """
# comment
A=1
export B = two words  # said
C='single $A #x' # c
D="double \\"q\\" \\n end" # c
E=
F=a#b
G = "x" trailing
not a line
1BAD=x
A=last
"""
    assert read_dotenv(text) == {
        "A": "last",
        "B": "two words",
        "C": "single $A #x",
        "D": 'double "q" \n end',
        "E": "",
        "F": "a#b",
        "G": '"x" trailing',
    }
