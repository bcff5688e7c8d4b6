"""A process with the imports behind it that runs tasks in forks of itself, to be killed or to meet a full disk.

A request is a line of JSON on the standard input: the task, its arguments, a file for what it prints, and what is to
befall it:

- ``delay`` and ``signal``: the signal is sent after so many seconds;
- ``event`` and ``signal``: the process sends itself the signal just before its n-th operation on a file below ``root``
  (to open, make, rename or remove one), as Python's audit hooks report them;
- ``event`` and ``errno``: from the n-th operation on that would make or rename a file below ``root`` all of them fail;
- ``limit``: no file may grow beyond so many bytes.

The answer is a line of JSON: the exit status (negative: the signal that ended the process) and the seconds it took. It
comes when the processes that the task has started are gone as well, and with them the last who could print something.
"""

import contextlib
import errno
import json
import os
import resource
import shutil
import signal
import sys
import threading
import time
import traceback

#: the exit status of a process that Ctrl-C reached before or after its task
OUTSIDE = 71
CREATING = {"os.mkdir", "os.rename"}
REMOVING = {"os.remove", "os.rmdir"}


def watch(request):
    """Let something befall this process at an operation on a file."""
    root, wanted, seen = request["root"], request["event"], 0
    owner = os.getpid()

    def hook(event, arguments):
        nonlocal seen
        if event == "open":
            path, _, flags = arguments
            creating = bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
        elif event in CREATING or event in REMOVING:
            path, creating = arguments[0], event in CREATING
        else:
            return
        if isinstance(path, int) or not os.fspath(path).startswith(root) or os.getpid() != owner:
            return
        if "errno" in request and not creating:
            return
        seen += 1
        if "errno" in request:
            if seen >= wanted:
                raise OSError(request["errno"], os.strerror(request["errno"]), os.fspath(path))
        elif seen == wanted:
            os.kill(owner, request["signal"])
            if request["signal"] == signal.SIGKILL:
                time.sleep(60)

    sys.addaudithook(hook)


def child(tasks, request, log):
    """Run the task; never returns."""
    code = 70
    try:
        os.dup2(log, 1)
        os.dup2(log, 2)
        if "limit" in request:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (request["limit"], request["limit"]))
        if "event" in request:
            watch(request)
        try:
            code = tasks.run(request["task"], request["arguments"])
        except SystemExit as exit_:
            code = exit_.code
        except KeyboardInterrupt:
            code = OUTSIDE
        except BaseException:
            traceback.print_exc()
            code = 1
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
    finally:
        os._exit(code)


def keep(printed, path):
    """Write what a process prints into a file, to its end."""
    with os.fdopen(printed, "rb") as source, open(path, "wb") as target:
        shutil.copyfileobj(source, target)


def serve(tasks, requests, answers):
    for line in requests:
        request = json.loads(line)
        begin = time.monotonic()
        # a pipe and not a file, which the limit on the size of files would concern
        printed, log = os.pipe()
        process = os.fork()
        if process == 0:
            child(tasks, request, log)
        os.close(log)
        reader = threading.Thread(target=keep, args=(printed, request["log"]))
        reader.start()
        if "delay" in request:
            time.sleep(request["delay"])
            os.kill(process, request["signal"])
        _, status = os.waitpid(process, 0)
        reader.join()
        answer = {"status": os.waitstatus_to_exitcode(status), "seconds": time.monotonic() - begin}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def main():
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    from kill_tasks import Tasks

    tasks = Tasks()
    answers.write(json.dumps({"ready": errno.ENOSPC}) + "\n")
    answers.flush()
    serve(tasks, sys.stdin, answers)


if __name__ == "__main__":
    main()
