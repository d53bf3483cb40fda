"""A Slurm of one node: munged, slurmctld and slurmd from the packages, with a configuration of their own."""
import os
import shutil
import socket
import subprocess
import tempfile
import time

DAEMONS = ("munged", "slurmctld", "slurmd")
TOOLS = ("sbatch", "srun", "squeue", "scancel", "scontrol")
# No systemd and no cgroups. A job that is queued again waits for cred_expire, by default for two minutes.
CONFIGURATION = """\
ClusterName=normlab
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=5
SlurmctldPort={controller}
SlurmdPort={node}
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
ReturnToService=2
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=2
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO
"""


def missing():
    """Why there can be no Slurm here; empty if there can."""
    if os.getuid() != 0:
        return "starting a Slurm needs root"
    for program in (*DAEMONS, *TOOLS):
        if not find(program):
            return f"there is no {program}: slurmctld, slurmd, slurm-client or munge is not installed"
    return ""


def find(program):
    return shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin")


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Slurm:
    def __enter__(self):
        # munged wants folders that others may enter, which pytest's are not.
        self.folder = tempfile.mkdtemp(prefix="normlab-slurm-")
        os.chmod(self.folder, 0o755)
        self.started = []
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def start(self):
        host = socket.gethostname().split(".")[0]
        path = f"{self.folder}/slurm.conf"
        with open(path, "w") as file:
            file.write(CONFIGURATION.format(folder=self.folder, host=host, controller=free_port(), node=free_port()))
        self.environment = {name: value for name, value in os.environ.items()
                            if not name.startswith(("SLURM_", "SBATCH_", "SQUEUE_"))} | {"SLURM_CONF": path}
        for name in ("state", "spool"):
            os.mkdir(f"{self.folder}/{name}")
        key = f"{self.folder}/munge.key"
        with open(os.open(key, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:
            file.write(os.urandom(128))
        self.daemon("munged", "--foreground", f"--key-file={key}", f"--socket={self.folder}/munge.socket",
                    f"--pid-file={self.folder}/munge.pid", f"--log-file={self.folder}/munge.log",
                    f"--seed-file={self.folder}/munge.seed")
        self.wait_for(lambda: os.path.exists(f"{self.folder}/munge.socket"))
        self.daemon("slurmctld", "-D", "-f", path)
        self.daemon("slurmd", "-D", "-f", path, "-N", host)
        self.wait_for(lambda: "State=IDLE" in self.call("scontrol", "show", "node", check=False), 60)

    def daemon(self, program, *words):
        with open(f"{self.folder}/{program}.out", "w") as said:
            self.started.append(subprocess.Popen([find(program), *words], env=self.environment, stdout=said,
                                                 stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL))

    def __exit__(self, *_):
        if len(self.started) == len(DAEMONS):
            self.call("scancel", "--user=root", check=False)
            deadline = time.time() + 45  # of which Slurm itself takes 30 before it kills
            while self.call("squeue", "--noheader", check=False) and time.time() < deadline:
                time.sleep(0.2)
        for process in reversed(self.started):
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def call(self, *words, check=True):
        done = subprocess.run([str(word) for word in words], env=self.environment, capture_output=True, text=True,
                              timeout=60)
        assert not check or done.returncode == 0, f"{words}: {done.stdout}{done.stderr}{self.logs()}"
        return done.stdout.strip()

    def logs(self):
        text = ""
        for name in sorted(os.listdir(self.folder)):
            if name.endswith((".log", ".out")):
                with open(f"{self.folder}/{name}", errors="replace") as file:
                    text += f"\n== {name}\n{file.read()[-2000:]}"
        return text

    def wait_for(self, condition, seconds=30):
        deadline = time.time() + seconds
        while not condition():
            for process in self.started:
                assert process.poll() is None, f"{process.args[0]} ended{self.logs()}"
            assert time.time() < deadline, self.logs()
            time.sleep(0.1)

    def submit(self, script, *options):
        """The number of the job."""
        return self.call("sbatch", "--parsable", *options, script)

    def tasks(self, job, state=None):
        """The array tasks of a job that are queued or run, or those in one state: {'7_1': 'RUNNING'}."""
        words = ["squeue", "--noheader", "--array", f"--jobs={job}", "--format=%i %T"]
        lines = [line.split() for line in self.call(*words, check=False).splitlines()]
        return {task: each for task, each in lines if state in (None, each)}
