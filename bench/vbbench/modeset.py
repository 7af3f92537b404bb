# SPDX-License-Identifier: GPL-2.0
"""The modes: what of vBalance is loaded, and with which parameters."""
import dataclasses


@dataclasses.dataclass(frozen=True)
class Mode:
    """host: vbalance_host is loaded in the emulated host, with host_params.
    guest: what runs in the guest: none, irqbalance or module, with the
    module's parameters. hogs: are the vCPUs kept busy? rivals: and do busy
    threads of the host share their CPUs, where the scenario has them?"""
    host: bool = False
    guest: str = "none"
    params: str = ""
    hogs: bool = True
    host_params: str = ""
    rivals: bool = True


MODES = {
    "idle": Mode(hogs=False, rivals=False),
    "alone": Mode(rivals=False),
    "stock": Mode(),
    "irqbalance": Mode(guest="irqbalance"),
    "paper": Mode(True, "module", "remap=affinity policy=paper"),
    "cost": Mode(True, "module", "remap=affinity policy=cost"),
    "host-only": Mode(True),
    # These two have no parameters: they are what a user gets.
    "guest-only": Mode(False, "module"),
    "remap-only": Mode(True, "module", host_params="boost=0"),
    "full": Mode(True, "module"),
    "share-4": Mode(True, "module", host_params="boost_share=4"),
}
# The others are for scenarios of their own: the demo has six minutes, and the
# bench's table 100 columns.
DEFAULT_MODES = tuple(m for m in MODES if m not in ("alone", "host-only",
                                                    "remap-only", "share-4"))

# How often irqbalance looks, its -t. Its default of 10 s would not let it act
# even once in a phase of the demo; like this it gets in a phase about as many
# looks as in the paper's minute. Nothing else about it is changed.
IRQBALANCE_S = 1


def with_params(text):
    """MODES with other parameters of the guest's module, from "MODE=PARAMS"
    words; raises ValueError."""
    modes = dict(MODES)
    for one in text:
        name, _, params = one.partition("=")
        if name not in modes or modes[name].guest != "module":
            raise ValueError(f"no mode with our module in the guest: {name}")
        modes[name] = dataclasses.replace(modes[name], params=params)
    return modes


def modes_file(modes, names, hogs):
    """What the scripts need to know of each mode, one line each:
    NAME HOST-MODULE(0|1[,PARAM]...) RIVALS(0|1) BUSY-THREADS
    GUEST(none|irqbalance|module) PARAMS"""
    def host(mode):
        return ",".join([f"{mode.host:d}", *mode.host_params.split()])
    return "".join(
        f"{n} {host(modes[n])} {modes[n].rivals:d} "
        f"{hogs if modes[n].hogs else 0} "
        f"{modes[n].guest} {modes[n].params}".rstrip() + "\n" for n in names)
