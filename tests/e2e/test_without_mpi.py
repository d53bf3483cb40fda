"""What a normlab without MPI says, and that it needs none."""
import shutil
import subprocess

import pytest
from conftest import BINARY, run


@pytest.fixture
def bare(tmp_path):
    """The program beside no module, as it is built where MPI is not installed."""
    for name in ("normlab", "normlab-torch"):
        shutil.copy2(BINARY.parent / name, tmp_path / name)
    return tmp_path / "normlab"


def test_one_clear_sentence(bare, text, tmp_path):
    words = [str(bare), "train", "--data", str(text), "--out", str(tmp_path / "run")]
    done = subprocess.run(words, capture_output=True, text=True, env={"OMPI_COMM_WORLD_SIZE": "4"})
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert "4 processes were started together, but this normlab was built without MPI" in done.stderr
    assert not (tmp_path / "run").exists()


def test_one_process_loads_no_mpi(text, tmp_path):
    """Also where mpirun started it as the only one."""
    trace = tmp_path / "loaded"
    run("train", "--data", text, "--out", tmp_path / "run", "--quiet", "--set", "train.max_steps=1", "model.n_layers=1",
        "model.d_model=16", "model.n_heads=1", "model.seq_len=16",
        env={"OMPI_COMM_WORLD_SIZE": "1", "LD_DEBUG": "files", "LD_DEBUG_OUTPUT": str(trace)}, check=0)
    logs = [path.read_text() for path in tmp_path.glob("loaded.*")]
    assert any("libtorch_cpu" in log for log in logs) and not any("libmpi" in log for log in logs)
