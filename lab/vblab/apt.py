# SPDX-License-Identifier: GPL-2.0
"""The Debian mirror and the apt options of this machine.

The repository names no mirror: what the machine's own apt uses is right for
it, be it a proxy, a snapshot or a local mirror.
"""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from .util import LabError

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")

# Options of the machine's apt that decide whether a mirror can be used.
PASSED_OPTIONS = re.compile(
    r"^Acquire::(Check-Valid-Until|Check-Date|Retries|ForceIPv[46]"
    r"|AllowInsecureRepositories|AllowWeakRepositories"
    r"|https?::.*|Max-ValidTime)$", re.IGNORECASE)


@dataclass
class Source:
    """One `deb` entry: several URIs and suites in the deb822 form."""
    uris: list[str]
    suites: list[str]
    components: list[str]
    options: dict[str, str] = field(default_factory=dict)


def parse_deb822(text: str) -> list[Source]:
    sources = []
    for stanza in re.split(r"\n[ \t]*\n", text):
        fields: dict[str, str] = {}
        key = None
        for line in stanza.splitlines():
            if line.startswith("#"):
                continue
            if line[:1] in (" ", "\t") and key:
                fields[key] += "\n" + line.strip()
            elif ":" in line:
                key, value = line.split(":", 1)
                key = key.strip().lower()
                fields[key] = value.strip()
        if "deb" not in fields.get("types", "").split():
            continue
        if fields.get("enabled", "yes").lower() in ("no", "false", "0"):
            continue
        options = {k: fields[k] for k in
                   ("signed-by", "trusted", "check-valid-until", "check-date")
                   if k in fields}
        sources.append(Source(fields.get("uris", "").split(),
                              fields.get("suites", "").split(),
                              fields.get("components", "").split(), options))
    return sources


def parse_one_line(text: str) -> list[Source]:
    sources = []
    for line in text.splitlines():
        line = line.split("#", 1)[0].strip()
        m = re.match(r"deb\s+(?:\[(?P<opts>[^\]]*)\]\s+)?"
                     r"(?P<uri>\S+)\s+(?P<suite>\S+)\s*(?P<comps>.*)$", line)
        if not m:
            continue
        options = dict(o.split("=", 1) for o in (m["opts"] or "").split()
                       if "=" in o)
        sources.append(Source([m["uri"]], [m["suite"]], m["comps"].split(),
                              {k.lower(): v for k, v in options.items()}))
    return sources


def machine_sources(etc: Path = Path("/etc/apt")) -> list[Source]:
    sources: list[Source] = []
    lists = [etc / "sources.list"]
    lists += sorted((etc / "sources.list.d").glob("*.list"))
    for path in lists:
        if path.is_file():
            sources += parse_one_line(path.read_text())
    for path in sorted((etc / "sources.list.d").glob("*.sources")):
        sources += parse_deb822(path.read_text())
    return sources


def os_codename(os_release: Path = Path("/etc/os-release")) -> str:
    m = re.search(r'^VERSION_CODENAME="?([^"\n]+)', os_release.read_text(),
                  re.MULTILINE)
    return m.group(1) if m else "stable"


def debian_sources(sources: list[Source], codename: str) -> list[Source]:
    """Those that serve the release itself, not its security updates."""
    return [s for s in sources
            if "main" in s.components
            and any(suite in (codename, "stable") for suite in s.suites)]


def security_sources(sources: list[Source]) -> list[Source]:
    """Those of security updates, of whatever release."""
    return [s for s in sources
            if "main" in s.components
            and any(is_security(suite) for suite in s.suites)]


def is_security(suite: str) -> bool:
    return suite.endswith("-security")


def _chosen(variable: str, found: list[Source]) -> list[Source]:
    uri = os.environ.get(variable)
    return [Source([uri], [], ["main"])] if uri else found


def _line(source: Source, uri: str, suite: str) -> str:
    opts = {k: v for k, v in source.options.items()
            if not (k == "signed-by" and "\n" in v)}
    # The keyring of this machine's release signs the others too.
    if "signed-by" not in opts and KEYRING.exists():
        opts["signed-by"] = str(KEYRING)
    text = " ".join(f"{k}={v}" for k, v in sorted(opts.items()))
    return f"deb [{text}] {uri} {suite} main" if text \
        else f"deb {uri} {suite} main"


def _security() -> list[Source]:
    return _chosen("VBALANCE_SECURITY_MIRROR",
                   security_sources(machine_sources()))


def has_security() -> bool:
    """Are there sources of security updates?"""
    return bool(_security())


def mirror_lines(suites: list[str]) -> list[str]:
    """sources.list lines for other suites on this machine's mirrors. Security
    suites are left out where the machine has no source of any."""
    found = _chosen("VBALANCE_MIRROR",
                    debian_sources(machine_sources(), os_codename()))
    if not found:
        raise LabError(
            "no Debian mirror found in /etc/apt/sources.list and "
            "sources.list.d (an entry for this release with component "
            "main); set VBALANCE_MIRROR to the URI of one")
    security = _security()
    return list(dict.fromkeys(
        _line(source, uri, suite)
        for suite in suites
        for source in (security if is_security(suite) else found)
        for uri in source.uris))


def parse_options(dump: str) -> list[str]:
    """`apt-config dump` output to the options worth passing on."""
    options = []
    for m in re.finditer(r'^(\S+) "([^"\n]+)";$', dump, re.MULTILINE):
        if PASSED_OPTIONS.match(m[1]):
            options.append(f'{m[1]} "{m[2]}"')
    return options


def machine_options() -> list[str]:
    dump = subprocess.run(["apt-config", "dump"], check=True, text=True,
                          stdout=subprocess.PIPE).stdout
    return parse_options(dump)
