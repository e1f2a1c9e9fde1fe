"""Hold what is said of the machine to what its files say, and to asking torch only where they do not."""

from __future__ import annotations

import platform
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import torch

from demur.model.runtime import machine
from demur.model.runtime.machine import gpu, has_bf16, instructions, overflows_in_int8, processor

if TYPE_CHECKING:
    from pathlib import Path

X86 = "processor\t: 0\nmodel name\t: Some CPU @ 2.0GHz\nflags\t\t: fpu sse2 {} vmx\n\nprocessor\t: 1\nflags\t\t: none\n"
AMD, INTEL = (f"vendor_id\t: {vendor}\n{X86}" for vendor in ("AuthenticAMD", "GenuineIntel"))
ARM = "processor\t: 0\nBogoMIPS\t: 50.00\nFeatures\t: fp asimd {}\nCPU part\t: 0xd40\n"


@pytest.fixture
def cpu_info(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let the system describe a processor by this file, and have no GPU."""
    monkeypatch.setattr(machine, "_CPU_INFO", tmp_path / "cpuinfo")
    monkeypatch.setattr(machine, "_DEVICES", tmp_path)
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    return tmp_path / "cpuinfo"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (X86.format("avx512_bf16"), True),
        (X86.format("amx_bf16"), True),
        (AMD.format("avx512_bf16"), True),
        (INTEL.format("avx512_bf16"), False),
        (INTEL.format("avx512_bf16 amx_bf16"), True),
        (X86.format("avx2"), False),
        (ARM.format("bf16"), True),
        (ARM.format("i8mm"), False),
    ],
)
def test_bf16_is_quick_where_the_processor_has_it(cpu_info: Path, text: str, *, expected: bool) -> None:
    """By its instructions, but for those of AVX-512 on Intel, which are slower than fp32."""
    cpu_info.write_text(text, encoding="utf-8")
    assert has_bf16() is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (X86.format("avx2"), True),
        (X86.format("avx2 avx_vnni"), False),
        (X86.format("avx512f avx512_vnni"), False),
        (ARM.format("asimddp"), False),
        ("processor : 0\n", False),
    ],
)
def test_bytes_overflow_on_x86_without_vnni(cpu_info: Path, text: str, *, expected: bool) -> None:
    """By its instructions; of what says nothing, nothing is known against it."""
    cpu_info.write_text(text, encoding="utf-8")
    assert overflows_in_int8() is expected


def test_a_processor_is_told_by_its_name_and_by_what_it_computes_with(cpu_info: Path) -> None:
    """Only the first of several counts; what has nothing to do with arithmetic is left out."""
    cpu_info.write_text(X86.format("avx2"), encoding="utf-8")
    assert (processor(), instructions()) == ("Some CPU @ 2.0GHz", ["avx2", "sse2"])
    cpu_info.write_text(ARM.format("i8mm"), encoding="utf-8")
    assert (processor(), instructions()) == ("0xd40", ["asimd", "i8mm"])


def test_torch_is_asked_where_the_system_says_nothing(cpu_info: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on macOS; versions of torch that cannot say name none."""
    assert not cpu_info.exists()
    known = {"architecture": "arm64", "neon": True, "bf16": True, "sve": False}
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: known, raising=False)
    assert instructions() == ["bf16", "neon"]
    monkeypatch.delattr(torch.cpu, "get_capabilities")
    assert instructions() == []


@pytest.mark.parametrize("name", ["nvidia0", "nvidiactl", "kfd", "dxg"])
def test_torch_is_asked_for_a_gpu_where_there_is_a_device(
    cpu_info: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Its driver may be too old, or torch built without it."""
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "Some GPU")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert gpu() is None
    (cpu_info.parent / name).touch()
    assert gpu() == "Some GPU"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert gpu() is None


def test_systems_that_show_no_devices_are_asked_through_torch(cpu_info: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On Windows there is no file to look for."""
    del cpu_info
    monkeypatch.setattr(platform, "system", lambda: "Windows")
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "Some GPU")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert gpu() == "Some GPU"


@pytest.mark.skipif(platform.system() != "Linux" or torch.cuda.is_available(), reason="here, torch has to be asked")
def test_linux_without_a_gpu_needs_no_torch() -> None:
    """In a process of its own: importing torch is what takes the time."""
    code = (
        "import sys; from demur.model.runtime.machine import gpu, has_bf16, instructions\n"
        "gpu(), has_bf16(), instructions(); print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
