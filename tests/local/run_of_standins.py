"""A program that runs stand-in agents until it is killed: `python -m tests.local.run_of_standins SETTINGS`.

SETTINGS is JSON: folder, words (what each stand-in does), pids (a file), guardian_grace_seconds. Once all
listen, it prints one line of JSON: run, folder, guardian, agents.
"""

import asyncio
import json
import sys
from pathlib import Path

from tests.contract.slot_runtime import in_phase
from tests.fakes.orders import STANDIN, an_order

from pageslots.control.ports import PodPhase
from pageslots.local.runtime import ProcessRuntime


async def main(folder: str, words: list[str], pids: str, guardian_grace_seconds: float) -> None:
    runtime = ProcessRuntime(
        Path(folder),
        scratch_root=Path(folder, "scratch"),
        agent_command=STANDIN,
        guardian_grace_seconds=guardian_grace_seconds,
    )
    async with runtime:
        for number, behaviour in enumerate(words):
            await runtime.create(an_order(number, env={"STANDIN": behaviour, "STANDIN_PIDS": pids}))
        pods = [await in_phase(runtime, PodPhase.RUNNING, number) for number in range(len(words))]
        told = {
            "run": runtime.run_folder.run,
            "folder": str(runtime.run_folder.path),
            "guardian": runtime.guardian_pid,
            "agents": [runtime.agent_pid(pod) for pod in pods],
        }
        sys.stdout.write(json.dumps(told) + "\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(**json.loads(sys.argv[1])))
