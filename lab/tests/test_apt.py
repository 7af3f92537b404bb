# SPDX-License-Identifier: GPL-2.0
import os
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import labpath  # noqa: F401
from vblab import apt
from vblab.util import LabError

DEB822 = """\
Types: deb deb-src
# a comment
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main contrib
Signed-By: /usr/share/keyrings/some.gpg

Types: deb
URIs: http://mirror.example/debian-security
Suites: bookworm-security
Components: main

Types: deb
URIs: http://disabled.example/debian
Suites: bookworm
Components: main
Enabled: no

Types: deb-src
URIs: http://sources.example/debian
Suites: bookworm
Components: main
"""

ONE_LINE = """\
# deb http://comment.example/debian bookworm main
deb [arch=amd64 trusted=yes] http://mirror.example/debian bookworm main # x
deb http://mirror.example/debian-security bookworm-security main
deb http://other.example/thing stable other
deb-src http://mirror.example/debian bookworm main
"""


OWN = "/usr/share/keyrings/own.gpg"


class Sources(unittest.TestCase):
    def test_deb822(self):
        sources = apt.parse_deb822(DEB822)
        self.assertEqual([s.uris for s in sources],
                         [["http://mirror.example/debian"],
                          ["http://mirror.example/debian-security"]])
        self.assertEqual(sources[0].suites, ["bookworm", "bookworm-updates"])
        self.assertEqual(sources[0].options,
                         {"signed-by": "/usr/share/keyrings/some.gpg"})

    def test_one_line(self):
        sources = apt.parse_one_line(ONE_LINE)
        self.assertEqual(len(sources), 3)
        self.assertEqual(sources[0].options,
                         {"arch": "amd64", "trusted": "yes"})
        self.assertEqual(sources[0].components, ["main"])

    def test_the_release_itself_is_chosen(self):
        for sources in (apt.parse_deb822(DEB822),
                        apt.parse_one_line(ONE_LINE)):
            chosen = apt.debian_sources(sources, "bookworm")
            self.assertEqual([s.uris for s in chosen],
                             [["http://mirror.example/debian"]])

    def test_machine_sources_reads_all_places(self):
        with tempfile.TemporaryDirectory() as d:
            etc = Path(d)
            (etc / "sources.list.d").mkdir()
            (etc / "sources.list").write_text(ONE_LINE)
            (etc / "sources.list.d/a.sources").write_text(DEB822)
            (etc / "sources.list.d/b.sources.disabled").write_text(DEB822)
            self.assertEqual(len(apt.machine_sources(etc)), 5)


class MirrorLines(unittest.TestCase):
    def lines(self, sources, env=None):
        keyring = mock.MagicMock(exists=lambda: True)
        keyring.__str__.return_value = OWN
        with mock.patch.object(apt, "machine_sources", lambda: sources), \
                mock.patch.object(apt, "os_codename", lambda: "bookworm"), \
                mock.patch.object(apt, "KEYRING", keyring), \
                mock.patch.dict(os.environ, env or {}, clear=True):
            return apt.mirror_lines(["trixie", "trixie-security"])

    def test_other_suites_of_the_same_mirror(self):
        self.assertEqual(
            self.lines(apt.parse_deb822(DEB822)),
            ["deb [signed-by=/usr/share/keyrings/some.gpg] "
             "http://mirror.example/debian trixie main",
             "deb [signed-by=/usr/share/keyrings/own.gpg] "
             "http://mirror.example/debian-security trixie-security main"])
        self.assertEqual(
            self.lines(apt.parse_one_line(ONE_LINE)),
            ["deb [arch=amd64 signed-by=/usr/share/keyrings/own.gpg "
             "trusted=yes] http://mirror.example/debian trixie main",
             "deb [signed-by=/usr/share/keyrings/own.gpg] "
             "http://mirror.example/debian-security trixie-security main"])

    def test_without_security_updates(self):
        sources = apt.parse_deb822(DEB822)
        sources.pop()
        self.assertEqual(len(self.lines(sources)), 1)

    def test_environment_wins(self):
        for sources in ([], apt.parse_deb822(DEB822)):
            lines = self.lines(sources, {
                "VBALANCE_MIRROR": "http://own.example/d",
                "VBALANCE_SECURITY_MIRROR": "http://own.example/s"})
            self.assertEqual([line.split()[-3:] for line in lines], [
                ["http://own.example/d", "trixie", "main"],
                ["http://own.example/s", "trixie-security", "main"]])

    def test_no_mirror_is_an_error_that_says_what_to_do(self):
        with self.assertRaisesRegex(LabError, "VBALANCE_MIRROR"):
            self.lines([])


class Options(unittest.TestCase):
    def test_only_what_decides_about_a_mirror(self):
        dump = ('APT::Architecture "amd64";\n'
                'Acquire::Check-Valid-Until "false";\n'
                'Acquire::http::Proxy "http://proxy.example:1";\n'
                'Acquire::Languages:: "none";\n'
                'Acquire::http "";\n')
        self.assertEqual(apt.parse_options(dump),
                         ['Acquire::Check-Valid-Until "false"',
                          'Acquire::http::Proxy "http://proxy.example:1"'])


if __name__ == "__main__":
    unittest.main()
