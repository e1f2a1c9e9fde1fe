"""Tell what there is to compute on here, without torch where that can be: importing it takes longer than ten rows."""

from __future__ import annotations

import platform
from pathlib import Path

__all__ = ["gpu", "has_bf16", "instructions", "overflows_in_int8", "processor"]

_CPU_INFO = Path("/proc/cpuinfo")
_DEVICES = Path("/dev")
# What the drivers of NVIDIA (on boards of its own, too), of AMD, and of Windows' Linux put there.
_GPU_FILES = ("nvidia*", "nvhost-gpu", "nvgpu", "kfd", "dxg")
# Of x86 and of Arm, in which Linux and torch use the same names.
_BF16_INSTRUCTIONS = frozenset({"avx512_bf16", "amx_bf16", "bf16"})
# That of x86 which sums products of bytes in 32 bits at once.
_INT8_INSTRUCTIONS = frozenset({"avx512_vnni", "avx_vnni", "amx_int8"})
# What the names of sets for arithmetic begin with; the rest, of kernels and hypervisors, changes nothing here.
_ARITHMETIC = ("sse", "avx", "fma", "amx", "asimd", "neon", "sve", "bf16", "i8mm")


def gpu() -> str | None:
    """Return the name of the GPU that torch would use; None where there is none."""
    if not _may_have_gpu():
        return None
    import torch

    return torch.cuda.get_device_name() if torch.cuda.is_available() else None


def has_bf16() -> bool:
    """Tell whether bf16 is quick here: on a GPU that has it, or on a CPU whose instructions for its products are quick.

    Those of AVX-512 are quicker than fp32 on AMD (4.5 times as many products, measured on an EPYC), and slower on Intel
    (half as many on Sapphire Rapids where AMX is withheld, so that a training step takes 1.5 times as long as in fp32).
    """
    if gpu() is not None:
        import torch

        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    quick = (
        _BF16_INSTRUCTIONS - {"avx512_bf16"} if _described().get("vendor_id") == "GenuineIntel" else _BF16_INSTRUCTIONS
    )
    return not quick.isdisjoint(instructions())


def overflows_in_int8() -> bool:
    """Tell whether sums of products of unsigned and signed bytes overflow here.

    Without VNNI, which most of Intel's have had since 2020 and AMD's since 2022, x86 sums two of them in 16 bits: too
    few for large ones.
    """
    known = instructions()
    return "sse2" in known and _INT8_INSTRUCTIONS.isdisjoint(known)


def processor() -> str:
    """Return the processor's name, or what else the system says of it."""
    described = _described()
    return described.get("model name") or described.get("CPU part") or platform.processor() or platform.machine()


def instructions() -> list[str]:
    """Return the processor's instruction sets for arithmetic, by name; none where neither the system nor torch says."""
    described = _described()
    named = (described.get("flags") or described.get("Features", "")).split() if described else _known_to_torch()
    return sorted(name for name in named if name.startswith(_ARITHMETIC))


def _known_to_torch() -> list[str]:
    import torch

    # Not before torch 2.13.
    describe = getattr(torch.cpu, "get_capabilities", None)
    return [name for name, has in describe().items() if has is True] if callable(describe) else []


def _may_have_gpu() -> bool:
    """Tell whether torch need be asked: Linux shows its devices as files, other systems do not."""
    return platform.system() != "Linux" or any(any(_DEVICES.glob(name)) for name in _GPU_FILES)


def _described() -> dict[str, str]:
    """Return what Linux says of the first processor; nothing elsewhere."""
    try:
        first, _, _ = _CPU_INFO.read_text(encoding="utf-8", errors="replace").partition("\n\n")
    except OSError:
        return {}
    lines = (line.partition(":") for line in first.splitlines())
    return {name.strip(): value.strip() for name, _, value in lines}
